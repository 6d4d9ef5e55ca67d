/**
 * A process of up to some thousand clients for the benchmark of rooms. Each reads only the first frame of a connection,
 * and counts the bytes of the others by their type. The benchmark sends commands over IPC.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { openClient, Refused, type Client as Connection } from './signaling-client.js';
import type { Joined, Pace, Resumptions, Ticket } from './rooms-crowd.js';

/** As the SDK: it gives up an attempt after this time, and the session after its grace period. */
const ATTEMPT_MS = 10_000;
const PING_SECONDS = 15;
/** A join is tried again for as long. On a busy machine, a join may need several attempts of ATTEMPT_MS. */
const JOIN_WITHIN_MS = 90_000;

interface Welcome {
  roomId: string;
  sessionId: string;
  resumeSecret: string;
  participantId: string;
  graceMs: number;
}
interface Client {
  connection: Connection;
  welcome: Welcome;
  /** Its bytes count for this group. */
  group: { name: string };
}

const clients = new Map<number, Client>();
let received: Record<string, Record<string, number>> = {};
/** Where clients resume when they lose their connection; empty: they do not. */
let refuge: string[] = [];
let resumptions: Resumptions = { welcomesAt: [], attempts: 0, ends: {} };

const COMMANDS: Record<string, (argument: any) => unknown> = {
  join,
  leave,
  send,
  group: ({ keys, name }: { keys: number[]; name: string }) => {
    for (const key of keys) of(key).group.name = name;
  },
  participantIds: ({ keys }: { keys: number[] }) => keys.map((key) => of(key).welcome.participantId),
  received: () => received,
  forgetReceived: () => void (received = {}),
  resumeAt: ({ urls }: { urls: string[] }) => {
    refuge = urls;
    resumptions = { welcomesAt: [], attempts: 0, ends: {} };
  },
  resumptions: () => resumptions,
};

process.on('message', ({ id, command, argument }: any) => {
  void Promise.resolve()
    .then(() => COMMANDS[command]?.(argument))
    .then(
      (result) => process.send?.({ id, result }),
      (error: unknown) => process.send?.({ id, error: error instanceof Error ? error.stack : String(error) }),
    );
});
process.once('disconnect', () => process.exit());

let turn = 0;
setInterval(() => {
  turn++;
  for (const [key, { connection }] of clients) {
    if (key % PING_SECONDS === turn % PING_SECONDS && connection.isOpen()) connection.send({ type: 'ping', id: 'p' });
  }
}, 1_000);

/**
 * Joins with all tickets: `atOnce` at a time, or `perSecond` of them each second. Repeats, as the SDK does, attempts that
 * the gateway did not answer in time, that it asks to repeat, or whose connection was lost.
 */
async function join({ tickets, atOnce, perSecond }: { tickets: Ticket[] } & Pace): Promise<Joined> {
  const tookMs: number[] = [];
  const failures: Record<string, number> = {};
  const retries: Record<string, number> = {};
  const one = async ({ key, url, token, group = 'all' }: Ticket) => {
    const began = performance.now();
    for (let attempt = 0; ; attempt++) {
      try {
        await connect(key, url, { type: 'join', token, autoSubscribe: false }, { name: group });
        tookMs.push(performance.now() - began);
        return;
      } catch (error) {
        const { reason, isFinal, retryAfterMs } = refusalOf(error);
        const pauseMs = retryAfterMs + backoffMs(attempt);
        if (isFinal || performance.now() - began + pauseMs > JOIN_WITHIN_MS) {
          add(failures, reason, 1);
          return;
        }
        add(retries, reason, 1);
        await delay(pauseMs);
      }
    }
  };
  const began = performance.now();
  await pLimit(atOnce ?? Infinity).map(tickets, async (ticket, index) => {
    if (perSecond !== undefined) await delay(Math.max(0, began + (index * 1_000) / perSecond - performance.now()));
    await one(ticket);
  });
  return { tookMs, retries, failures };
}

async function leave({ keys = [...clients.keys()] }: { keys?: number[] }): Promise<void> {
  refuge = [];
  await Promise.all(
    keys.map(async (key) => {
      const { connection } = of(key);
      clients.delete(key);
      if (!connection.isOpen()) return;
      connection.send({ type: 'leave' });
      await connection.closed;
    }),
  );
}

function send({ key, message }: { key: number; message: object }): void {
  of(key).connection.send(message);
}

/** Opens a connection with its first message. @throws Refused */
async function connect(key: number, url: string, first: object, group: Client['group']): Promise<void> {
  const onFrame = (type: string, bytes: number) => add((received[group.name] ??= {}), type, bytes);
  const connection = await openClient(url, { onFrame, withinMs: ATTEMPT_MS });
  const client = { connection, welcome: welcomeOf(await connection.enter(first)), group };
  clients.set(key, client);
  void connection.closed.then(() => {
    if (clients.get(key) === client && refuge.length > 0) void resume(key, client);
  });
}

/** Resumes as the SDK does, at any of the gateways that are left. */
async function resume(key: number, { group, welcome }: Client): Promise<void> {
  const { roomId, sessionId, resumeSecret, graceMs } = welcome;
  const giveUpAt = Date.now() + graceMs;
  for (let attempt = 0; Date.now() < giveUpAt; attempt++) {
    await delay(Math.min(backoffMs(attempt), giveUpAt - Date.now()));
    resumptions.attempts++;
    const url = refuge[Math.floor(Math.random() * refuge.length)];
    if (url === undefined) return;
    try {
      await connect(key, url, { type: 'resume', roomId, sessionId, resumeSecret, autoSubscribe: false }, group);
      resumptions.welcomesAt.push(Date.now());
      return;
    } catch (error) {
      const { reason } = refusalOf(error);
      add(resumptions.ends, reason, 1);
      if (reason === 'invalid_session') return;
    }
  }
  add(resumptions.ends, 'gave up', 1);
}

/** The SDK's pause before attempt n. */
function backoffMs(attempt: number): number {
  return Math.min(5_000, 200 * 2 ** attempt) * (0.5 + 0.5 * Math.random());
}

function welcomeOf(message: Record<string, any>): Welcome {
  const { room, sessionId, resumeSecret, participant, reconnectGraceSeconds } = message;
  const { participantId } = participant;
  return { roomId: room.id, sessionId, resumeSecret, participantId, graceMs: reconnectGraceSeconds * 1_000 };
}

function of(key: number): Client {
  const client = clients.get(key);
  if (client === undefined) throw new Error(`There is no client ${key}`);
  return client;
}

function refusalOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  throw error;
}

function add(counts: Record<string, number>, name: string, more: number): void {
  counts[name] = (counts[name] ?? 0) + more;
}
