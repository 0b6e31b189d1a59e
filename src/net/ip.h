/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses belong to the public Internet. Asked about the address a connection is about to
 * use, after every name and spelling has been resolved, so "127.1", "0x7f000001" and a name whose
 * second answer differs from its first come out the same.
 */
#ifndef NET_IP_H
#define NET_IP_H

#include <netinet/in.h>

#include "base/str.h"

struct sockaddr;

/* False for loopback, private, link-local, shared, reserved and multicast ranges, for IPv6 forms
 * that carry an IPv4 address, and for anything that is neither IPv4 nor IPv6. */
bool ip_public(const struct sockaddr *address);

/* The name under which an address has its share of what all use: itself, or for IPv6 its first half
 * (/64), within which one subscriber has as many addresses as it likes. An IPv4 address in the form
 * of IPv6 is that IPv4 address. What is no address names itself. */
enum { IP_SHARE_BYTES = INET6_ADDRSTRLEN + 4 };
str ip_share(str address, char out[static IP_SHARE_BYTES]);

#endif
