import { createServer } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';
import { listenUntilEnd } from '@callplane/testing';
import { signalingUrl } from './stage.testkit.js';

export interface ModifiedGateway {
  url: string;
  /** Changes the text of each message to its client. */
  modify: (text: string) => string;
  /** Changes the text of each message of its client. */
  modifySent: (text: string) => string;
  /** The messages to its clients as the gateway wrote them. */
  heard: string[];
  /** Invents a message to every client. */
  say(text: string): void;
}

export const unchanged = (text: string): string => text;

/** A gateway that changes what it tells its clients: it stands between them and an honest one. */
export async function startModifiedGateway(honestUrl: string): Promise<ModifiedGateway> {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  const { port } = await listenUntilEnd(server);
  const gateway: ModifiedGateway = {
    url: signalingUrl(port),
    modify: unchanged,
    modifySent: unchanged,
    heard: [],
    say: (text) => sockets.clients.forEach((client) => client.send(text)),
  };
  sockets.on('connection', (client) => {
    const honest = new WebSocket(honestUrl, client.protocol);
    const opened = new Promise((resolve) => honest.once('open', resolve));
    client.on('message', (bytes: Buffer) => void opened.then(() => honest.send(gateway.modifySent(bytes.toString()))));
    honest.on('message', (bytes: Buffer) => {
      const text = bytes.toString();
      gateway.heard.push(text);
      client.send(gateway.modify(text));
    });
    honest.on('error', () => client.terminate());
    honest.on('close', () => client.close());
    client.on('close', () => honest.terminate());
  });
  return gateway;
}
