import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, repositoryRoot, stopAtEnd } from '@callplane/testing';
import { openBrowser, type Browsers, type ParticipantPage } from './pages.testkit.js';
import { recordingsOf } from './recordings.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

/** Four WHIP clients that others wrote publish, and a participant in a browser receives them. */

const PYTHON_PACKAGES = ['imageio-ffmpeg==0.8.1', 'aiortc==1.16.0', 'aiohttp==3.14.5'];
const INSTALL_WITHIN_MS = 600_000;

/** Python with ffmpeg and aiortc, in the folder of tools; null with a message if they cannot be installed. */
function pythonClients(): { python: string; ffmpeg: string } | null {
  const folder = join(repositoryRoot, '.tools', 'python-whip');
  const python = join(folder, 'bin', 'python');
  const run = (file: string, ...args: string[]) => spawnSync(file, args, { timeout: INSTALL_WITHIN_MS }).status === 0;
  const isInstalled =
    run(python, '-c', 'import imageio_ffmpeg, aiortc, aiohttp') ||
    (run('python3', '-m', 'venv', folder) && run(python, '-m', 'pip', 'install', '--quiet', ...PYTHON_PACKAGES));
  if (isInstalled) {
    const script = 'import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())';
    return { python, ffmpeg: execFileSync(python, ['-c', script], { encoding: 'utf8' }).trim() };
  }
  process.stderr.write('    skipped: ffmpeg and aiortc, because python3, venv or PyPI is not there\n');
  return null;
}

const clients = pythonClients();
const python = clients === null ? test.skip : test;
let stage: Stage;
let browsers: Browsers;
let library: string;
beforeAll(async () => {
  stage = await openStage({ relay: true, recordings: true });
  browsers = await openBrowser();
  library = bundled();
});

/** Vite takes no objects of Jest's realm. */
const BUNDLE = `
  import { build } from 'vite';
  const lib = { entry: process.argv[1], formats: ['iife'], name: 'Whip' };
  const [{ output }] = await build({ configFile: false, logLevel: 'error', build: { write: false, lib } });
  process.stdout.write(output[0].code);
`;

/** The WHIP clients of browsers as one script that sets `Whip`. */
function bundled(): string {
  const entry = join(repositoryRoot, 'tests', 'browser', 'whip-clients.mjs');
  const options = { cwd: repositoryRoot, maxBuffer: 16 * 1024 * 1024, encoding: 'utf8' } as const;
  return execFileSync(process.execPath, ['--input-type=module', '-e', BUNDLE, entry], options);
}

const whipUrl = (): string => new URL('/v1/whip', stage.signaling.url).href;

/** A room with a participant that receives, and a token for an encoder. */
async function newStream(): Promise<{ roomId: string; viewer: ParticipantPage; token: string; participantId: string }> {
  const roomId = await stage.newRoom();
  const viewer = await browsers.newParticipant();
  await viewer.join({ url: stage.url, token: (await stage.token(roomId, 'Viewer')).token });
  return { roomId, viewer, ...(await stage.token(roomId, 'Encoder')) };
}

/** Resolves once pictures and sound of the encoder have arrived and been decoded. */
async function arrives(viewer: ParticipantPage): Promise<void> {
  await eventually(
    async () => {
      const received = await viewer.ask('received');
      const { frames = 0, samples = 0 } = received['Encoder'] ?? {};
      if (frames < 20 || samples < 20_000) throw new Error(`arrived: ${JSON.stringify(received)}`);
      return true;
    },
    { timeoutMs: 60_000 },
  );
}
const isGone = (roomId: string) =>
  eventually(async () => (await stage.eventTypes(roomId)).includes('participant.left'));

function started(file: string, args: string[]): { child: ChildProcess; output: () => string } {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  stopAtEnd(() => Promise.resolve(void child.kill('SIGKILL')));
  return { child, output: () => text };
}

describe('outside of browsers', () => {
  python('ffmpeg 9 publishes H.264 and Opus without trickle', async () => {
    const { roomId, viewer, token } = await newStream();
    const { child, output } = started(clients!.ffmpeg, [
      ...'-hide_banner -re -f lavfi -i testsrc=size=320x180:rate=15 -f lavfi -i sine=440'.split(' '),
      ...'-c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -bf 0 -g 15'.split(' '),
      ...'-c:a libopus -ar 48000 -ac 2 -f whip -handshake_timeout 30000 -authorization'.split(' '),
      ...[token, whipUrl()],
    ]);
    await arrives(viewer).catch((error: unknown) => {
      throw new Error(output().replaceAll(token, '…').slice(-2000), { cause: error });
    });
    child.kill('SIGINT');
    await isGone(roomId);
    await viewer.close();
  });

  python('aiortc publishes VP8 and Opus', async () => {
    const { roomId, viewer, token } = await newStream();
    const script = join(repositoryRoot, 'tests', 'browser', 'whip-aiortc.py');
    const { child, output } = started(clients!.python, [script, whipUrl(), token]);
    await arrives(viewer).catch((error: unknown) => {
      throw new Error(output().slice(-2000), { cause: error });
    });
    child.stdin?.end();
    await eventually(() => output().includes('DELETE 200'));
    await isGone(roomId);
    await viewer.close();
  });
});

interface Published {
  library: 'Binbat' | 'Eyevinn';
  url: string;
  token: string;
  codec?: 'video/VP8' | 'video/H264';
  isTrickling?: boolean;
  isRelayed?: boolean;
}

/** Runs in the page. */
async function publish({ library: name, url, token, codec, isTrickling = true, isRelayed = false }: Published) {
  const { Whip } = globalThis as any;
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 320, height: 180 } });
  const policy = isRelayed ? 'relay' : 'all';
  const prefer = (peer: RTCPeerConnection) => {
    if (codec === undefined) return;
    const codecs = RTCRtpSender.getCapabilities('video')!.codecs.filter(({ mimeType }) => mimeType === codec);
    for (const one of peer.getTransceivers()) if (one.sender.track?.kind === 'video') one.setCodecPreferences(codecs);
  };
  if (name === 'Binbat') {
    const peer = new RTCPeerConnection({ iceTransportPolicy: policy });
    for (const track of stream.getTracks()) peer.addTransceiver(track, { direction: 'sendonly' });
    prefer(peer);
    const client = new Whip.Binbat();
    await client.publish(peer, url, token);
    Object.assign(globalThis, { stop: () => client.stop() });
    return;
  }
  const client = new Whip.Eyevinn({
    endpoint: url,
    opts: { authkey: token, iceServers: [], noTrickleIce: !isTrickling },
    peerConnectionFactory: (configuration: RTCConfiguration) =>
      new RTCPeerConnection({ ...configuration, iceTransportPolicy: policy }),
  });
  await client.setIceServersFromEndpoint();
  await client.ingest(stream);
  Object.assign(globalThis, { stop: () => client.destroy() });
}

async function encoderPage(published: Omit<Published, 'url'>) {
  const { page } = await browsers.newParticipant();
  await page.addScriptTag({ content: library });
  await page.evaluate(publish, { ...published, url: whipUrl() });
  return { stop: () => page.evaluate(() => (globalThis as any).stop()) };
}

describe('in Chromium', () => {
  test.each<[string, Omit<Published, 'url' | 'token'>]>([
    ['@binbat/whip-whep with VP8, trickling', { library: 'Binbat', codec: 'video/VP8' }],
    ['@binbat/whip-whep with H.264, trickling', { library: 'Binbat', codec: 'video/H264' }],
    ['@binbat/whip-whep through TURN alone', { library: 'Binbat', isRelayed: true }],
    ['@eyevinn/whip-web-client, trickling', { library: 'Eyevinn' }],
    ['@eyevinn/whip-web-client without trickle', { library: 'Eyevinn', isTrickling: false }],
  ])('%s', async (_, how) => {
    const { roomId, viewer, token } = await newStream();
    const encoder = await encoderPage({ ...how, token });
    await arrives(viewer);
    await encoder.stop();
    await isGone(roomId);
    await viewer.close();
  });

  test('an encoder is recorded as any participant: a file for each track', async () => {
    const recordings = recordingsOf(stage);
    const { roomId, viewer, token, participantId } = await newStream();
    await encoderPage({ library: 'Binbat', token });
    await arrives(viewer);
    const { id } = await recordings.record(roomId, { mode: 'tracks' });
    await recordings.isRecorded(roomId, 2);
    await stage.call('DELETE', `/v1/rooms/${roomId}`);
    const { status, files } = await recordings.finished(id);
    expect(status).toBe('completed');
    const tracks = files.map((file: any) => `${file.participantId} ${file.source}`);
    expect(tracks.sort()).toEqual([`${participantId} camera`, `${participantId} microphone`]);
  });
});
