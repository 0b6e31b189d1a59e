/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses belong to the public Internet. Asked about the address a connection is about to
 * use, after every name and spelling has been resolved, so "127.1", "0x7f000001" and a name whose
 * second answer differs from its first come out the same.
 */
#ifndef NET_IP_H
#define NET_IP_H

#include "base/def.h"

struct sockaddr;

/* False for loopback, private, link-local, shared, reserved and multicast ranges, for IPv6 forms
 * that carry an IPv4 address, and for anything that is neither IPv4 nor IPv6. */
bool ip_public(const struct sockaddr *address);

#endif
