import { text } from 'node:stream/consumers';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import { waitUntil } from './wait.ts';

/** A real SMTP server that keeps what it is sent. */
export interface MailServer {
  /** For `SMTP_URL`. */
  readonly url: string;
  readonly received: readonly Email[];
  /** Deliveries tried, refused ones included. */
  readonly attempts: number;
  /** Answers the next deliveries with this SMTP code instead of taking them. */
  refuseNext(times: number, code: number): void;
  /** The newest mail to an address, as soon as it arrives. */
  mailTo(address: string): Promise<Email>;
  stop(): Promise<void>;
}

/** Listens on the loopback interface. @param port 0: any that is free */
export async function startMailServer(port = 0): Promise<MailServer> {
  const received: Email[] = [];
  const refusals: number[] = [];
  let attempts = 0;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: (stream, _session, done) => {
      text(stream).then(async (raw) => {
        attempts += 1;
        const responseCode = refusals.shift();
        if (responseCode !== undefined) return done(Object.assign(new Error('refused by the test'), { responseCode }));
        received.push(await PostalMime.parse(raw));
        done();
      }, done);
    },
  });
  server.on('error', () => undefined); // a client that hangs up is the client's affair
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `smtp://127.0.0.1:${server.server.address().port}`,
    received,
    get attempts() {
      return attempts;
    },
    refuseNext: (times, code) => refusals.push(...Array<number>(times).fill(code)),
    mailTo: (address) =>
      waitUntil(() => received.findLast((candidate) => candidate.to?.some((to) => to.address === address)), {
        what: `a mail to ${address}`,
      }),
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}
