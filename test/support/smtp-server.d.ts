/** What the tests use of `smtp-server`, which ships no types. */
declare module 'smtp-server' {
  import type { AddressInfo, Server } from 'node:net';
  import type { Readable } from 'node:stream';

  interface Session {
    envelope: { mailFrom: { address: string } | false; rcptTo: { address: string }[] };
  }

  type Done = (error?: (Error & { responseCode?: number }) | null, message?: string) => void;

  interface Options {
    authOptional?: boolean;
    disabledCommands?: string[];
    logger?: boolean;
    onData?(stream: Readable, session: Session, done: Done): void;
    onRcptTo?(address: { address: string }, session: Session, done: Done): void;
  }

  export class SMTPServer {
    readonly server: Omit<Server, 'address'> & { address(): AddressInfo };
    constructor(options?: Options);
    listen(port: number, host: string, listening: () => void): Server;
    close(closed: () => void): void;
    on(event: 'error', listener: (error: Error) => void): this;
  }
}
