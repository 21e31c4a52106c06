// A worker that listens at the port of its first argument. When it is told to stop, it writes to the file of the second
// one whether its parent has the same socket: before it is released, and after.
import { appendFileSync, readdirSync, readlinkSync } from 'node:fs';
import net from 'node:net';
import { WorkerLink } from '../../../src/platform/nodes/worker-link.ts';

const [, , port, file] = process.argv;
const link = (await WorkerLink.open())!;
const server = net.createServer().listen(Number(port), '127.0.0.1', () => link.ready('ready'));

const socketAt = (pid: number | 'self', fd: number | string): string | null => {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return null; // closed meanwhile
  }
};
const parentHasIt = (): boolean => {
  const { _handle: handle } = server as unknown as { _handle: { fd: number } };
  const own = socketAt('self', handle.fd);
  return readdirSync(`/proc/${process.ppid}/fd`).some((fd) => socketAt(process.ppid, fd) === own);
};

async function stop(): Promise<void> {
  const before = parentHasIt();
  await link.released();
  appendFileSync(file!, `${JSON.stringify([before, parentHasIt()])}\n`);
  process.exit(0);
}
link.onStop(() => void stop());
