// What the examples use of Node and of ws, so that checking them needs no other package.
declare const process: { argv: string[]; stdin: unknown };
declare module 'ws' {
  export const WebSocket: unknown;
}
declare module 'node:readline' {
  interface Lines {
    on(event: 'line', act: (line: string) => void): Lines;
    on(event: 'close', act: () => void): Lines;
  }
  export function createInterface(options: { input: unknown }): Lines;
}
