import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { eventually, stopAtEnd } from '@callplane/testing';
import type { Platform } from './platform.js';
import {
  CLOSE_REASONS,
  type ClientMessage,
  type CloseReason,
  type RemoteParticipant,
  type ServerMessage,
  type WelcomeMessage,
} from './protocol.generated.js';

type Script = Partial<{
  [T in ClientMessage['type']]: (
    message: Extract<ClientMessage, { type: T }>,
    connection: ScriptedConnection,
  ) => ServerMessage | undefined;
}>;

/** What a client has connected to, from the gateway's side. */
export interface ScriptedConnection {
  readonly received: ClientMessage[];
  readonly protocol: string;
  send(...messages: ServerMessage[]): void;
  /** As the gateway ends a connection: says why, then closes. */
  end(reason: CloseReason): void;
  /** The close frame alone. */
  endWithoutMessage(reason: CloseReason): void;
  /** As a network ends it: without a word. */
  cut(): void;
  /** Neither reads nor answers any more, and says nothing. */
  freeze(): void;
}

export interface ScriptedGateway {
  readonly url: string;
  readonly connections: ScriptedConnection[];
  /** The n-th connection (from 0), once it is there. */
  connection(index: number): Promise<ScriptedConnection>;
  /** Stops listening, as one that was killed. */
  die(): Promise<void>;
}

export function participant(id: string, more: Partial<RemoteParticipant> = {}): RemoteParticipant {
  return {
    participantId: id,
    sessionId: `sess_${id}`,
    name: id,
    externalId: null,
    metadata: {},
    joinedAt: '2030-01-01T00:00:00.000Z',
    connected: true,
    tracks: [],
    ...more,
  };
}

export function welcome(more: Partial<WelcomeMessage> = {}): WelcomeMessage {
  return {
    type: 'welcome',
    resumed: false,
    sessionId: 'sess_me',
    resumeSecret: 'secret',
    reconnectGraceSeconds: 15,
    room: { id: 'room_1' },
    participant: participant('me'),
    participants: [],
    permissions: ['room:join', 'audio:publish', 'video:publish', 'screen:publish'],
    iceServers: [],
    iceServersExpireAt: new Date(Date.now() + 3_600_000).toISOString(),
    media: { state: 'up', continued: false },
    pingIntervalSeconds: 20,
    ...more,
  };
}

/** A WebSocket server that answers as told; what it is not told it answers as a good gateway does. */
export async function startScriptedGateway(script: Script = {}): Promise<ScriptedGateway> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  stopAtEnd(() => die());
  const connections: ScriptedConnection[] = [];
  const usual: Script = {
    join: () => welcome(),
    resume: () => welcome({ resumed: true, media: { state: 'up', continued: true } }),
    ping: () => ({ type: 'pong' }),
    candidate: () => undefined,
    leave: (_, connection) => {
      connection.end('left');
      return undefined;
    },
  };
  server.on('connection', (socket) => {
    let isFrozen = false;
    const send = (...messages: ServerMessage[]) => messages.forEach((message) => socket.send(JSON.stringify(message)));
    const endWithoutMessage = (reason: CloseReason) => socket.close(CLOSE_REASONS[reason].code, reason);
    const connection: ScriptedConnection = {
      received: [],
      protocol: socket.protocol,
      send,
      end: (reason) => {
        const { message, reconnect } = CLOSE_REASONS[reason];
        send({ type: 'closing', reason, message, reconnect });
        endWithoutMessage(reason);
      },
      endWithoutMessage,
      cut: () => socket.terminate(),
      freeze: () => {
        isFrozen = true;
      },
    };
    connections.push(connection);
    socket.on('message', (data: Buffer) => {
      if (isFrozen) return;
      const message = JSON.parse(data.toString()) as ClientMessage;
      connection.received.push(message);
      const answer = (script[message.type] ?? usual[message.type] ?? (() => ({ type: 'ok' })))(
        message as never,
        connection,
      ) as ServerMessage | undefined;
      if (answer !== undefined) send(message.id === undefined ? answer : ({ ...answer, replyTo: message.id } as never));
    });
  });
  const die = async () => {
    for (const client of server.clients) client.terminate();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    connection: (index) => eventually(() => connections[index]),
    die,
  };
}

/** A page whose network comes and goes as the test says. */
export function testPage() {
  const page = new EventTarget();
  return { page, tell: (event: 'online' | 'offline' | 'pagehide') => page.dispatchEvent(new Event(event)) };
}

export const nodePlatform = { WebSocket: WebSocket as unknown as Platform['WebSocket'], random: () => 0 };
