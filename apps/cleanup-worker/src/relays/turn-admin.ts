import { connect } from 'node:net';

/** The administration interface of a coturn: an unencrypted text protocol over TCP, protected by a password. */
export interface TurnServer {
  /** Host and port. */
  address: string;
  host: string;
  port: number;
  password: string;
}

/** `down`: the port refuses connections, so no coturn runs. `unreachable`: any other failure, or a wrong password. */
export class TurnAdminError extends Error {
  readonly kind: 'down' | 'unreachable';

  constructor(kind: 'down' | 'unreachable', address: string, problem: string) {
    super(`coturn at ${address}: ${problem}`);
    this.kind = kind;
  }
}

/** Sends one command and resolves to its output. */
export type RunCommand = (command: string) => Promise<string>;

/** Bounds of one dialog. The longest output is that of `pu`, with about 50 bytes per user with a relay. */
const CONNECT_WITHIN_MS = 2000;
const DIALOG_WITHIN_MS = 5000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

const PROMPT = /(?:^|\n)> $/;
const PASSWORD_PROMPT = /Enter password: \s*$/;

/**
 * Logs in, runs `work` and disconnects.
 * @throws TurnAdminError at any point of the work. It never contains the password or output.
 */
export async function inTurnAdmin<T>(server: TurnServer, work: (run: RunCommand) => Promise<T>): Promise<T> {
  const socket = connect({ host: server.host, port: server.port });
  let output = '';
  let failure: TurnAdminError | null = null;
  let waiting: { until: RegExp; resolve: (output: string) => void; reject: (error: Error) => void } | null = null;

  const fail = (kind: TurnAdminError['kind'], problem: string) => {
    failure ??= new TurnAdminError(kind, server.address, problem);
    waiting?.reject(failure);
    waiting = null;
    socket.destroy();
  };
  const resolveWaiting = () => {
    if (waiting === null || !waiting.until.test(output.slice(-64))) return;
    const { resolve } = waiting;
    waiting = null;
    resolve(output);
  };
  const read = (until: RegExp) =>
    new Promise<string>((resolve, reject) => {
      if (failure !== null) {
        reject(failure);
        return;
      }
      waiting = { until, resolve, reject };
      resolveWaiting();
    });

  const connectTimer = setTimeout(() => fail('unreachable', 'connection timed out'), CONNECT_WITHIN_MS);
  const dialogTimer = setTimeout(() => fail('unreachable', 'response timed out'), DIALOG_WITHIN_MS);
  socket.once('connect', () => clearTimeout(connectTimer));
  socket.on('data', (chunk) => {
    output += chunk.toString('latin1');
    if (output.length > OUTPUT_BYTES_MAX) fail('unreachable', 'too much output');
    else resolveWaiting();
  });
  socket.on('error', (error: NodeJS.ErrnoException) =>
    fail(error.code === 'ECONNREFUSED' ? 'down' : 'unreachable', error.code ?? 'connection failed'),
  );
  socket.on('close', () => fail('unreachable', 'connection closed'));

  const run = (command: string, until = PROMPT) => {
    output = '';
    socket.write(`${command}\r\n`);
    return read(until);
  };
  try {
    await read(PASSWORD_PROMPT);
    // coturn answers a wrong password with another password prompt.
    const answer = await run(server.password, /(?:(?:^|\n)> |Enter password: \s*)$/);
    if (!PROMPT.test(answer)) throw new TurnAdminError('unreachable', server.address, 'password refused');
    return await work(run);
  } finally {
    clearTimeout(connectTimer);
    clearTimeout(dialogTimer);
    socket.removeAllListeners('close');
    socket.destroy();
  }
}
