import { WebSocket } from 'ws';
import { SUBPROTOCOL } from '@callplane/protocol';

export class Refused extends Error {
  /** @param reason the close reason of the gateway; `late` in place of an answer in time; else the code of the socket's error, or `lost` */
  constructor(
    readonly reason: string,
    /** Whether the gateway asks the client not to repeat the attempt. */
    readonly isFinal = false,
    readonly retryAfterMs = 0,
  ) {
    super(reason);
  }
}

/** A message of the server, as JSON. */
type Message = Record<string, any>;

/**
 * Opens a connection to a gateway for load: without media and with as little work of its own as possible. It parses
 * only frames that somebody listens to.
 * @param onFrame gets the type of each frame, and its bytes.
 * @throws Refused if the connection does not open in time.
 */
export async function openClient(
  url: string,
  { onFrame, withinMs }: { onFrame?: (type: string, bytes: number) => void; withinMs?: number } = {},
) {
  const socket = new WebSocket(url, SUBPROTOCOL, { perMessageDeflate: false });
  const listeners = new Map<string, (message: Message) => void>();
  let end = new Refused('lost');
  const tooLong =
    withinMs === undefined
      ? undefined
      : setTimeout(() => {
          end = new Refused('late');
          socket.terminate();
        }, withinMs);
  socket.on('message', (data: Buffer) => {
    const type = typeOf(data);
    onFrame?.(type, data.length);
    if (type === 'closing') end = refusalIn(data);
    listeners.get(type)?.(JSON.parse(data.toString()) as Message);
  });
  socket.on('error', (error) => {
    if (end.reason === 'lost') end = new Refused((error as NodeJS.ErrnoException).code ?? 'lost');
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  void closed.then(() => clearTimeout(tooLong));
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    void closed.then(() => reject(end));
  });
  const send = (message: object) => socket.send(JSON.stringify(message));
  return {
    send,
    /** Sets the only listener for `type`. */
    on: (type: string, listener: (message: Message) => void) => void listeners.set(type, listener),
    /**
     * Sends the first message of a session. Resolves with the welcome.
     * @throws Refused if the gateway refuses it, or does not answer in time.
     */
    enter: (first: object) =>
      new Promise<Message>((resolve, reject) => {
        listeners.set('welcome', (welcome) => {
          clearTimeout(tooLong);
          listeners.delete('welcome');
          resolve(welcome);
        });
        void closed.then(() => reject(end));
        send(first);
      }),
    isOpen: () => socket.readyState === WebSocket.OPEN,
    closed,
    close: () => socket.terminate(),
  };
}

export type Client = Awaited<ReturnType<typeof openClient>>;

export async function joinedClient(url: string, token: string): Promise<Client> {
  const client = await openClient(url);
  await client.enter({ type: 'join', token, autoSubscribe: false });
  return client;
}

/** The type of a frame, without parsing it. */
function typeOf(data: Buffer): string {
  return /"type":"(\w+)"/.exec(data.toString('latin1', 0, 60))?.[1] ?? 'unknown';
}

function refusalIn(closing: Buffer): Refused {
  const { reason, reconnect, retryAfterSeconds = 0 } = JSON.parse(closing.toString()) as Message;
  return new Refused(String(reason), reconnect !== 'resume', Number(retryAfterSeconds) * 1_000);
}
