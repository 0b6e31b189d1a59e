// SPDX-License-Identifier: Apache-2.0
//
// Local storage, for what must survive a reload: drafts, what has not been sent, preferences. Values are JSON. Names begin
// with the address of the page and, for what is somebody's own, the user: two people at one browser do not meet.
// Where there is no storage, or it is full, values live in memory: nothing is lost before the tab is closed.
//
// A tab hears of what another one wrote a moment later, and until then reads what was there before. So things that several
// tabs may write at once each have a name of their own, and are never read, changed and written as one.

const memory = new Map<string, string>();
const base = `fermata:${new URL('.', document.baseURI).pathname}:`;
let owner = '';

const full = (name: string): string => base + (name === 'prefs' ? '' : `${encodeURIComponent(owner)}:`) + name;

export const keep = {
  // Whose things are meant from here on.
  of(user: string): void {
    owner = user;
  },

  // What is not there, or was written by something else, is no JSON.
  get<T>(name: string): T | undefined {
    try {
      return JSON.parse(memory.get(full(name)) ?? localStorage.getItem(full(name))!) ?? undefined;
    } catch {
      return undefined;
    }
  },

  // Everything whose name begins so.
  all<T>(start: string): T[] {
    let names = [...memory.keys()];
    try {
      names = [...new Set([...names, ...Object.keys(localStorage)])];
    } catch { /* no storage */ }
    return names.filter((one) => one.startsWith(full(start))).flatMap((one) => keep.get<T>(start + one.slice(full(start).length)) ?? []);
  },

  set(name: string, value: unknown): void {
    const text = JSON.stringify(value) as string | undefined;
    memory.delete(full(name));
    try {
      if (text) localStorage.setItem(full(name), text);
      else localStorage.removeItem(full(name));
    } catch {
      if (text) memory.set(full(name), text);
    }
  },

  // When another tab has changed it, or what begins so.
  watch(name: string, changed: () => void): () => void {
    const told = ({ key }: StorageEvent) => { if (key?.startsWith(full(name))) changed(); };
    addEventListener('storage', told);
    return () => removeEventListener('storage', told);
  },
};
