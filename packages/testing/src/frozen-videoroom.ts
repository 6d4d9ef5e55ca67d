import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { stopAtEnd } from './resources.js';
import { temporaryDirectory } from './test-servers.js';

/** A session on a Janus, as `MediaNode.openSession()` of packages/media makes it. */
interface JanusSession {
  attach(label: string): Promise<number>;
  request(message: { janus: string } & Record<string, unknown>, options?: { awaitsEvent: boolean }): Promise<unknown>;
}

const OFFER = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'c=IN IP4 0.0.0.0',
  'a=mid:0',
  'a=sendonly',
  'a=rtpmap:111 opus/48000/2',
  'a=rtcp-mux',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:abcdefghijklmnopqrstuvwx',
  'a=setup:actpass',
  `a=fingerprint:sha-256 ${Array(32).fill('AB').join(':')}`,
  '',
].join('\r\n');

/**
 * Freezes the thread of VideoRoom that carries out joins and publications, until Janus is killed: VideoRoom opens a
 * recording, which is a named pipe that nobody reads. The rest of Janus answers on, and SIGTERM does not end it.
 */
export async function freezeVideoRoom(session: JanusSession, adminKey: string): Promise<void> {
  const dir = temporaryDirectory('recordings');
  stopAtEnd(() => rm(dir, { recursive: true, force: true }));
  // Janus runs as another user.
  chmodSync(dir, 0o777);
  // The second name is for a Janus with `recordings_tmp_ext`.
  for (const name of ['frozen-audio-0.mjr', 'frozen-audio-0.mjr.part']) {
    execFileSync('mkfifo', ['-m', '666', join(dir, name)]);
  }
  const handle_id = await session.attach('freezes VideoRoom');
  const ask = (body: Record<string, unknown>, awaitsEvent: boolean, jsep = {}) =>
    session.request({ janus: 'message', handle_id, body, ...jsep }, { awaitsEvent });
  const room = 'room-with-recording';
  await ask({ request: 'create', room, admin_key: adminKey, rec_dir: dir, is_private: true }, false);
  await ask({ request: 'join', ptype: 'publisher', room, id: 'recorded' }, true);
  // Resolves with the acknowledgement of Janus itself. VideoRoom never answers.
  const publish = { request: 'publish', record: true, filename: 'frozen' };
  await ask(publish, false, { jsep: { type: 'offer', sdp: OFFER } });
}
