import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { eventually, stopAtEnd } from '@callplane/testing';
import type { Platform } from './platform.js';
import {
  CLOSE_REASONS,
  SUBPROTOCOL,
  type ClientMessage,
  type CloseReason,
  type RemoteParticipant,
  type ServerMessage,
  type WelcomeMessage,
} from './protocol.generated.js';

export type Script = Partial<{
  [T in ClientMessage['type']]: (
    message: Extract<ClientMessage, { type: T }>,
    connection: ScriptedConnection,
  ) => ServerMessage | undefined;
}>;

/** A client's connection, from the gateway's side. */
export interface ScriptedConnection {
  readonly received: ClientMessage[];
  readonly protocol: string;
  /** Resolves to the close code once the client has closed the connection. */
  readonly closed: Promise<number>;
  send(...messages: ServerMessage[]): void;
  /** Ends the connection as a gateway does: sends the reason, then closes. */
  end(reason: CloseReason, more?: { retryAfterSeconds?: number }): void;
  /** Ends the connection as a network does: without any message. */
  cut(): void;
  /** Stops reading and answering, without closing. */
  freeze(): void;
}

export interface ScriptedGateway {
  readonly url: string;
  readonly connections: ScriptedConnection[];
  /** Resolves to the n-th connection (from 0) once it exists. */
  connection(index: number): Promise<ScriptedConnection>;
  /** Stops listening, as a killed gateway does. */
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
    permissions: ['room:join', 'audio:publish', 'video:publish', 'screen:publish', 'messages:send', 'metadata:update'],
    iceServers: [],
    iceServersExpireAt: '2030-01-01T01:00:00.000Z',
    iceServersTtlSeconds: 3600,
    media: { state: 'up', continued: false },
    pingIntervalSeconds: 20,
    roster: { paged: false, next: null, participantCount: 1 + (more.participants?.length ?? 0), viewerCount: 0 },
    ...more,
  };
}

/** A WebSocket server that answers as scripted, and as a healthy gateway for everything else. */
export async function startScriptedGateway(script: Script = {}): Promise<ScriptedGateway> {
  const handleProtocols = (offered: Set<string>) => offered.has(SUBPROTOCOL) && SUBPROTOCOL;
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols });
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
    const connection: ScriptedConnection = {
      received: [],
      protocol: socket.protocol,
      closed: once(socket, 'close').then(([code]) => code as number),
      send,
      end: (reason, more = {}) => {
        const { code, message, reconnect } = CLOSE_REASONS[reason];
        send({ type: 'closing', reason, message, reconnect, ...more });
        socket.close(code, reason);
      },
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
      const answer = (script[message.type] ?? usual[message.type] ?? (() => ({ type: 'ok' as const })))(
        message as never,
        connection,
      );
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

/** A token that looks like one: the scripted gateway checks none. */
export const testToken = ['{}', JSON.stringify({ exp: 4_000_000_000 }), 'signature']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.');

/** A page whose `online`, `offline` and `pagehide` events the test fires. */
export function testPage() {
  const page = new EventTarget();
  return { page, dispatch: (event: 'online' | 'offline' | 'pagehide') => page.dispatchEvent(new Event(event)) };
}

export const nodePlatform = { WebSocket: WebSocket as unknown as Platform['WebSocket'], random: () => 0 };
