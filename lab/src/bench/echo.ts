/** The floor of the signaling benchmark: a bare `ws` server that only reads a JSON message and answers it. */
import { WebSocketServer } from 'ws';

process.once('disconnect', () => process.exit());
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
server.on('connection', (socket) => {
  socket.on('message', (data) => {
    const { id } = JSON.parse((data as Buffer).toString());
    socket.send(JSON.stringify({ type: 'pong', replyTo: id }));
  });
});
server.on('listening', () => process.send?.({ port: (server.address() as any).port }));
