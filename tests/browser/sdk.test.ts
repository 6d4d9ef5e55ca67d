import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { openBrowser, serveFolder, type Browsers } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

const packageFolder = join(repositoryRoot, 'packages', 'client-js');
let stage: Stage;
let browsers: Browsers;
/** A browser that plays no sound without a gesture, as users have it. */
let strict: Browsers;
let origin: string;
const opened: Page[] = [];

/** The SDK and the examples of its guide as one module for pages. */
const ENTRY = `
  import { createElement, StrictMode } from 'react';
  import { createRoot } from 'react-dom/client';
  import { Others, useCall } from './react.tsx';
  export * from '@callplane/client-js';
  export { enterRoom } from './plain.ts';
  export { firstCall } from './first-call.ts';
  export { joinEncrypted } from './encryption.ts';
  export { preview } from './devices.ts';
  export { pagesOf } from './pages.ts';
  function Room({ url, token }) {
    return createElement(Others, { call: useCall(url, token) });
  }
  export function renderRoom(place, props) {
    const root = createRoot(place);
    root.render(createElement(StrictMode, undefined, createElement(Room, props)));
    return root;
  }
`;
const BUNDLE = `
  import { build } from 'vite';
  await build({
    configFile: false,
    logLevel: 'warn',
    define: { 'process.env.NODE_ENV': '"development"' },
    resolve: { conditions: ['source'] },
    plugins: [{
      name: 'entry',
      resolveId: (id) => (id.endsWith('entry.ts') ? process.argv[1] + '/entry.ts' : undefined),
      load: (id) => (id.endsWith('/entry.ts') ? process.env.ENTRY : undefined),
    }],
    build: { outDir: process.argv[2], lib: { entry: 'entry.ts', formats: ['es'], fileName: 'sdk' } },
  });
`;

beforeAll(async () => {
  const folder = temporaryDirectory('sdk');
  const bundle = promisify(execFile)(
    'node',
    ['--input-type=module', '--eval', BUNDLE, join(packageFolder, 'examples'), folder],
    { cwd: packageFolder, env: { ...process.env, ENTRY } },
  );
  [stage, browsers, strict] = await Promise.all([openStage(), openBrowser(), openBrowser({ autoplay: false }), bundle]);
  origin = await serveFolder(folder);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((page) => page.context().close()));
});

async function open(from: Browsers = browsers): Promise<Page> {
  const page = await from.newPage();
  opened.push(page);
  page.on('pageerror', (error) => console.error('On the page:', error));
  await page.goto(origin);
  await page.evaluate(`import('/sdk.js').then((sdk) => { globalThis.sdk = sdk; })`);
  return page;
}

/** Joins the room; the page has the call as `call`. */
async function enter(roomId: string, name: string, from?: Browsers): Promise<Page> {
  const page = await open(from);
  const { token } = await stage.token(roomId, name);
  await page.evaluate(`sdk.connect(${JSON.stringify({ url: stage.url, token })}).then((call) => {
    globalThis.call = call;
    call.on('trackSubscribed', (track) => document.body.append(track.attach()));
    call.on('trackUnsubscribed', (track) => track.detach().forEach((element) => element.remove()));
  })`);
  return page;
}
/** Resolves once the expression is true on the page. */
const becomes = (page: Page, expression: string) =>
  eventually(async () => (await page.evaluate<boolean>(expression)) || Promise.reject(new Error(expression)));
/** Pictures with frames, and elements with sound, that advance. */
const plays = (page: Page, videos: number, sounds: number) =>
  becomes(
    page,
    `[...document.querySelectorAll('video')].filter((one) => one.videoWidth > 0 && !one.paused && one.playsInline).length === ${videos}
      && [...document.querySelectorAll('audio')].filter((one) => !one.paused && !one.muted).length === ${sounds}`,
  );
const counts = (page: Page) => page.evaluate<number>(`document.querySelectorAll('video, audio').length`);

test('a processor changes the picture that the others get, and one that makes too few pictures is taken away', async () => {
  const roomId = await stage.newRoom();
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
  await ada.evaluate(`(async () => {
    globalThis.problems = [];
    call.on('problem', ({ code }) => problems.push(code));
    await call.publish({ video: { width: 160, height: 120 } });
    /** Paints in a colour, as often as given. */
    globalThis.painter = (colour, everyMs) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 160, height: 120 });
      const drawing = canvas.getContext('2d');
      let timer;
      const processor = {
        process() {
          clearInterval(timer);
          const paint = () => { drawing.fillStyle = colour; drawing.fillRect(0, 0, 160, 120); };
          paint();
          timer = setInterval(paint, everyMs);
          return canvas.captureStream().getVideoTracks()[0];
        },
        stop() { clearInterval(timer); processor.isStopped = true; },
      };
      return processor;
    };
    globalThis.red = painter('red', 40);
    await call.tracks.get('camera').setProcessor(red);
  })()`);
  const shows = (isRed: boolean) =>
    becomes(
      bob,
      `(() => {
        const video = document.querySelector('video');
        if (!video?.videoWidth) return false;
        const drawing = new OffscreenCanvas(1, 1).getContext('2d');
        drawing.drawImage(video, 0, 0, 1, 1);
        const [r, g] = drawing.getImageData(0, 0, 1, 1).data;
        return (r > 150 && g < 100) === ${isRed} && (r > 0 || g > 0);
      })()`,
    );
  await shows(true);
  await ada.evaluate(`call.mute('camera').then(() => call.unmute('camera'))`);
  await shows(true);
  await ada.evaluate(`call.tracks.get('camera').setProcessor(painter('red', 500))`);
  expect(await ada.evaluate('red.isStopped')).toBe(true);
  await becomes(ada, `problems.join() === 'processor_failed'`);
  await shows(false);
});

describe('attached tracks', () => {
  test('play, and leave neither ghosts nor doubles when the sender goes and comes back', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await ada.evaluate(`call.publish({ audio: true, video: { width: 160, height: 120 } })`);
    await plays(bob, 1, 1);
    const playing = `[...call.participants.values()].flatMap(({ tracks }) => [...tracks.values()].map((one) => one.isPlaying))`;
    await becomes(bob, `${playing}.join() === 'true,true'`);
    await bob.evaluate(`document.querySelector('video').pause()`);
    await becomes(bob, `${playing}.filter((one) => one).length === 1`);
    await bob.evaluate(`document.querySelector('video').dataset.first = 'yes'`);
    await ada.evaluate(`call.unpublish('camera')`);
    await becomes(bob, `document.querySelectorAll('video').length === 0`);
    await ada.evaluate(`call.publish({ video: { width: 160, height: 120 } })`);
    await plays(bob, 1, 1);
    await ada.evaluate(`call.leave()`);
    await becomes(bob, `document.querySelectorAll('video, audio').length === 0`);
    const eve = await enter(roomId, 'Eve');
    await eve.evaluate(`call.publish({ audio: true, video: { width: 160, height: 120 } })`);
    await plays(bob, 1, 1);
    await bob.evaluate(`call.leave()`);
    expect(await counts(bob)).toBe(0);
  });

  test('sound that the browser blocks is reported, and plays after a click', async () => {
    const roomId = await stage.newRoom();
    const ada = await enter(roomId, 'Ada');
    await ada.evaluate(`call.publish({ audio: true, video: { width: 160, height: 120 } })`);
    const { token } = await stage.token(roomId, 'Bob');
    const bob = await strict.newPage();
    opened.push(bob);
    const said: string[] = [];
    bob.on('console', (message) => said.push(message.text()));
    // The page does everything by itself: an evaluation by Playwright counts as a gesture of the user.
    await bob.addInitScript(`addEventListener('load', async () => {
        const { connect } = await import('/sdk.js');
        const call = await connect(${JSON.stringify({ url: stage.url, token })});
        call.on('trackSubscribed', (track) => {
          const element = track.attach();
          element.ontimeupdate = () => console.log(track.kind + ' plays');
          document.body.append(element);
        });
        call.on('audioPlaybackBlocked', () => {
          console.log('blocked ' + call.isAudioBlocked);
          call.startAudio().catch(({ code }) => console.log(code));
        });
        call.on('audioPlaybackStarted', () => console.log('started ' + call.isAudioBlocked));
        addEventListener('click', () => void call.startAudio());
      })`);
    await bob.goto(origin);
    // A picture needs no gesture, because its element is muted.
    await eventually(() => ['blocked true', 'audio_blocked', 'video plays'].every((text) => said.includes(text)));
    expect(said).not.toContain('audio plays');
    await bob.mouse.click(5, 5);
    await eventually(() => ['started false', 'audio plays'].every((text) => said.includes(text)));
  });
});

describe('devices', () => {
  test('a camera is switched, muted and replaced while the others keep receiving the same track', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await ada.evaluate(`call.publish({ video: { width: 160, height: 120 } })`);
    await plays(bob, 1, 0);
    const frames = () =>
      bob.evaluate<number>(`document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames`);
    const advance = async () => {
      const before = await frames();
      await eventually(async () => (await frames()) > before + 3);
    };
    const devices = await ada.evaluate<{ deviceId: string }[]>(
      `sdk.listDevices('videoinput').then((all) => all.filter(({ label }) => label !== 'fake_device_1'))`,
    );
    const current = await ada.evaluate(`call.tracks.get('camera').deviceId`);
    const other = devices.find(({ deviceId }) => deviceId !== current)!.deviceId;
    await ada.evaluate(`call.switchDevice('videoinput', ${JSON.stringify(other)})`);
    expect(await ada.evaluate(`call.tracks.get('camera').deviceId`)).toBe(other);
    await advance();
    await ada.evaluate(`call.mute('camera')`);
    expect(await ada.evaluate(`call.tracks.get('camera').mediaStreamTrack.readyState`)).toBe('ended');
    await ada.evaluate(`call.unmute('camera')`);
    expect(await ada.evaluate(`call.tracks.get('camera').deviceId`)).toBe(other);
    await advance();
    await ada.evaluate(`{
        const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 64 });
        const context = canvas.getContext('2d');
        setInterval(() => { context.fillStyle = 'hsl(' + performance.now() + ' 50% 50%)'; context.fillRect(0, 0, 320, 64); }, 50);
        call.replaceTrack('camera', canvas.captureStream(15).getVideoTracks()[0]);
      }`);
    await becomes(
      bob,
      `document.querySelector('video').videoWidth === 5 * document.querySelector('video').videoHeight`,
    );
    expect(await counts(bob)).toBe(1);
    expect(
      await ada.evaluate(`sdk.isSupported() && sdk.isSupported('devices') && sdk.isSupported('screenShare')`),
    ).toBe(true);
    expect(await ada.evaluate(`call.publish({ video: true }).catch(({ code }) => code)`)).toBe('already_published');
  });

  test.each([
    ['true', true],
    ['{ echoCancellation: false }', false],
  ])('a microphone opened with %s cancels echo (%s) after another choice and a mute, too', async (audio, cancels) => {
    const ada = await enter(await stage.newRoom(), 'Ada');
    await ada.evaluate(`call.publish({ audio: ${audio} })`);
    const settings = () =>
      ada.evaluate(`(({ echoCancellation, deviceId }) => ({ echoCancellation, deviceId }))(
        call.tracks.get('microphone').mediaStreamTrack.getSettings())`);
    const { deviceId } = (await settings()) as { deviceId: string };
    const devices = await ada.evaluate<{ deviceId: string }[]>(`sdk.listDevices('audioinput')`);
    const other = devices.find((one) => ![deviceId, 'default'].includes(one.deviceId))!;
    await ada.evaluate(`call.switchDevice('audioinput', '${other.deviceId}')`);
    expect(await settings()).toEqual({ echoCancellation: cancels, deviceId: other.deviceId });
    await ada.evaluate(`call.mute('microphone').then(() => call.unmute('microphone'))`);
    expect(await settings()).toEqual({ echoCancellation: cancels, deviceId: other.deviceId });
  });
});

// Playwright waits for a promise that a script ends with, and calls a function: these end with undefined.
/** Devices of the page open when `answer()` is called, as they do when the user answers the browser's question. */
const HOLD = `{
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  const answered = new Promise((resolve) => { globalThis.answer = resolve; });
  globalThis.opened = [];
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    await answered;
    const stream = await open(constraints);
    opened.push(...stream.getTracks());
    return stream;
  };
  undefined;
}`;
/** The device is unplugged, as the page sees it. */
const unplug = (deviceId: string) => `{
  const devices = navigator.mediaDevices;
  const open = devices.getUserMedia.bind(devices);
  const list = devices.enumerateDevices.bind(devices);
  devices.enumerateDevices = async () => (await list()).filter((one) => one.deviceId !== '${deviceId}');
  devices.getUserMedia = async ({ video }) => {
    if (video.deviceId?.exact === '${deviceId}') throw new OverconstrainedError('deviceId');
    const { deviceId: _gone, ...others } = video;
    return open({ video: others });
  };
  undefined;
}`;

describe('devices that fail, or that the user no longer wants', () => {
  test('a camera that cannot be opened does not keep the microphone from being published', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    const result = await ada.evaluate(`call.publish({ audio: true, video: { deviceId: { exact: 'none' } } })
      .then(({ published, failed }) => [published.map(({ source }) => source), failed.map(({ source, code }) => [source, code])])`);
    expect(result).toEqual([['microphone'], [['camera', 'device_not_found']]]);
    await plays(bob, 0, 1);
  });

  test('a camera that still opens is closed by unpublish(), and starts muted after mute()', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    const publish = `call.publish({ video: { width: 160, height: 120 } })`;
    await ada.evaluate(HOLD);
    await ada.evaluate(`{ globalThis.publishing = ${publish}.catch(({ code }) => code); undefined; }`);
    await ada.evaluate(`call.unpublish()`);
    expect(await ada.evaluate(`publishing`)).toBe('aborted');
    await ada.evaluate(`answer()`);
    await becomes(ada, `opened.length === 1 && opened[0].readyState === 'ended' && call.tracks.size === 0`);

    await ada.evaluate(`Promise.all([${publish}, call.mute('camera')]).then(() => undefined)`);
    expect(await ada.evaluate(`opened.map(({ readyState }) => readyState)`)).toEqual(['ended', 'ended']);
    await becomes(bob, `[...call.participants.values()][0].tracks.get('camera')?.muted === true`);
    await ada.evaluate(`call.unmute('camera')`);
    await plays(bob, 1, 0);
  });

  test('a chosen camera that is unplugged while it is muted is replaced by the default one', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await ada.evaluate(`call.publish({ video: { width: 160, height: 120 } }).then(() => undefined)`);
    const first = await ada.evaluate<string>(`call.tracks.get('camera').deviceId`);
    const other = await ada.evaluate<string>(`sdk.listDevices('videoinput')
      .then((all) => all.find(({ label, deviceId }) => label !== 'fake_device_1' && deviceId !== '${first}').deviceId)`);
    await ada.evaluate(`call.switchDevice('videoinput', '${other}')`);
    await ada.evaluate(`call.mute('camera')`);
    await ada.evaluate(unplug(other));
    const refused = await ada.evaluate(`call.switchDevice('videoinput', '${other}').catch(({ code }) => code)`);
    expect(refused).toBe('device_not_found');
    await ada.evaluate(
      `{ call.on('deviceFallback', ({ deviceId }) => { globalThis.fallback = deviceId; }); undefined; }`,
    );
    await ada.evaluate(`call.unmute('camera')`);
    expect(await ada.evaluate(`fallback`)).toBe(first);
    await plays(bob, 1, 0);
  });
});

describe('a URL that is no gateway', () => {
  test('is named like the API, which browsers must be allowed to ask', async () => {
    const page = await open();
    const { token } = await stage.token(await stage.newRoom(), 'Ada');
    const options = JSON.stringify({ url: stage.api.url.replace('http', 'ws'), token, connectTimeoutMs: 500 });
    expect(await page.evaluate(`sdk.connect(${options}).catch(({ message }) => message)`)).toContain(
      'a server answers there, but it is no gateway',
    );
  });
});

/** The encodings that the page sends, by their names, as the browser counts them. */
const SENT = `call.getStats().then(({ publisher }) => [...publisher.values()]
  .filter(({ type, kind }) => type === 'outbound-rtp' && kind === 'video')
  .sort((a, b) => (a.rid ?? '').localeCompare(b.rid ?? ''))
  .map(({ rid, active, frameHeight }) => [rid, active, frameHeight]))`;

describe('video that is displayed', () => {
  test('is sent and received in the layer that its element needs, and not at all while no element shows it', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await ada.evaluate(`call.publish({ video: { width: 640, height: 360, frameRate: 10 } })`);
    await becomes(bob, `document.querySelector('video')?.videoWidth > 0`);
    const resize = (style: string) => bob.evaluate(`{ document.querySelector('video').style = '${style}'; }`);
    const shows = (height: number) => becomes(bob, `document.querySelector('video').videoHeight === ${height}`);
    const actives = async (...expected: boolean[]) =>
      eventually(
        async () => {
          const sent = await ada.evaluate<[string, boolean][]>(SENT);
          expect(sent.map(([, active]) => active)).toEqual(expected);
          return true;
        },
        { timeoutMs: 60_000, intervalMs: 250 },
      );
    await resize('width: 640px; height: 360px');
    await shows(360);
    await actives(true, false);

    await resize('width: 160px; height: 90px');
    await shows(180);
    await actives(false, true);

    // Out of the window.
    await resize('width: 640px; height: 360px; position: absolute; top: 5000px');
    await actives(false, false);
    await bob.evaluate(`scrollTo(0, 5000)`);
    await actives(true, false);
    await shows(360);
  });

  test('is sent in other layers after its media has got another size', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await ada.evaluate(`globalThis.picture = (width, height) => {
      const canvas = Object.assign(document.createElement('canvas'), { width, height });
      const context = canvas.getContext('2d');
      setInterval(() => { context.fillStyle = 'hsl(' + performance.now() + ' 50% 50%)'; context.fillRect(0, 0, width, height); }, 50);
      return canvas.captureStream(15).getVideoTracks()[0];
    }`);
    await ada.evaluate(`call.publish(picture(1280, 720), { source: 'camera' })`);
    await becomes(bob, `document.querySelector('video')?.videoWidth > 0`);
    await bob.evaluate(`{ document.querySelector('video').style = 'width: 80px; height: 45px'; }`);
    await becomes(bob, `document.querySelector('video').videoHeight === 180`);
    for (const [width, height] of [
      [320, 180],
      [640, 360],
      [1280, 720],
    ]) {
      await ada.evaluate(`call.replaceTrack('camera', picture(${width}, ${height}))`);
      await becomes(
        ada,
        `${SENT}.then((sent) => sent.some(([rid, active, height]) => rid === 'l' && active && height === 180))`,
      );
      await becomes(bob, `document.querySelector('video').videoHeight === 180`);
    }
  });

  test('is displayed by an element in another window, while the page of the call is hidden', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await ada.evaluate(`call.publish({ video: { width: 640, height: 360, frameRate: 10 } })`);
    await becomes(bob, `document.querySelector('video')?.videoWidth > 0`);
    const [popUp] = await Promise.all([
      bob.context().waitForEvent('page'),
      bob.evaluate(`{ globalThis.popUp = open('about:blank', '', 'popup,width=700,height=500'); }`),
    ]);
    await popUp.evaluate('document.body.textContent = ""');
    await bob.evaluate(`{
      globalThis.video = document.querySelector('video');
      popUp.document.body.append(video);
      video.style = 'width: 640px; height: 360px';
      void video.play();
      Object.defineProperty(document, 'hidden', { value: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }`);
    await becomes(ada, `${SENT}.then((sent) => sent[0][1] && sent[0][2] === 360)`);
    await bob.evaluate(`{ video.style = 'width: 160px; height: 90px'; }`);
    await becomes(bob, `video.videoHeight === 180`);
    await becomes(ada, `${SENT}.then(([[, best], [, low]]) => !best && low)`);
    // The picture still moves.
    const before = await bob.evaluate<number>(`video.getVideoPlaybackQuality().totalVideoFrames`);
    await becomes(bob, `video.getVideoPlaybackQuality().totalVideoFrames > ${before} + 10`);
    await popUp.close();
    await becomes(ada, `${SENT}.then((sent) => sent.every(([, active]) => !active))`);
  });

  test('has the codec that its publisher chose, and several codecs share a room', async () => {
    const roomId = await stage.newRoom();
    const offered = await (
      await open()
    ).evaluate<string[]>(
      `[...new Set(RTCRtpSender.getCapabilities('video').codecs.map(({ mimeType }) => mimeType.toLowerCase()))]`,
    );
    const codecs = ['vp8', 'vp9', 'h264', 'av1'].filter((codec) => offered.includes(`video/${codec}`));
    expect(codecs).toEqual(expect.arrayContaining(['vp8', 'vp9']));
    const bob = await enter(roomId, 'Bob');
    for (const codec of codecs) {
      const page = await enter(roomId, codec);
      const options = `{ video: { width: 160, height: 120, frameRate: 5 }, codec: '${codec}' }`;
      await page.evaluate(`call.publish(${options})`);
    }
    await eventually(
      async () => {
        const received = await bob.evaluate<Record<string, string>>(`call.getStats().then(({ subscriber }) => {
            const all = [...subscriber.values()];
            const named = [...call.participants.values()].map(({ name, tracks }) => {
              const id = tracks.get('camera')?.mediaStreamTrack?.id;
              const inbound = all.find(({ trackIdentifier, framesDecoded }) => trackIdentifier === id && framesDecoded > 2);
              return [name, all.find(({ id }) => id === inbound?.codecId)?.mimeType.toLowerCase()];
            });
            return Object.fromEntries(named);
          })`);
        expect(received).toEqual(Object.fromEntries(codecs.map((codec) => [codec, `video/${codec}`])));
        return true;
      },
      { timeoutMs: 60_000, intervalMs: 250 },
    );
  });
});

describe('the examples of the guide', () => {
  test('the encrypted one joins with the key in its link, also as a bundle', async () => {
    const roomId = await stage.newEncryptedRoom();
    const join = async (name: string, page: Page) => {
      const { token } = await stage.token(roomId, name);
      const given = `${JSON.stringify(stage.url)}, ${JSON.stringify(token)}`;
      await page.evaluate(`sdk.joinEncrypted(${given}).then((call) => { globalThis.call = call; })`);
      return page.evaluate(`[call.encryption.fingerprint, location.hash]`);
    };
    const [one, two] = await Promise.all([open(), open()]);
    const first = (await join('Ada', one)) as [string, string];
    await two.evaluate(`{ location.hash = ${JSON.stringify(first[1])}; }`);
    expect(await join('Bob', two)).toEqual(first);
    await two.evaluate(`{ call.on('message', ({ data }) => { globalThis.received = data; }); }`);
    await one.evaluate(`call.send('hello')`);
    await becomes(two, `globalThis.received === 'hello'`);
  });

  test('the plain one and the React one see each other’s publisher; React joins once, though its effect runs twice, and leaves with its component', async () => {
    const roomId = await stage.newRoom();
    const [plain, react] = await Promise.all([open(), open()]);
    const [one, two] = await Promise.all([stage.token(roomId, 'Plain'), stage.token(roomId, 'React')]);
    const complaints: string[] = [];
    react.on('console', (said) => {
      if (['error', 'warning'].includes(said.type())) complaints.push(said.text());
    });
    await react.evaluate(
      `{ globalThis.root = sdk.renderRoom(document.body.appendChild(document.createElement('div')), ${JSON.stringify({ url: stage.url, token: two.token })}); }`,
    );
    await plain.evaluate(
      `sdk.enterRoom(${JSON.stringify(stage.url)}, ${JSON.stringify(one.token)}, document.body).then((call) => { globalThis.call = call; })`,
    );
    await plays(react, 1, 1);
    await becomes(plain, `call.participants.size === 1`);
    await react.evaluate(`root.unmount()`);
    await becomes(plain, `call.participants.size === 0`);
    const types = await stage.eventTypes(roomId);
    expect(types.filter((type) => type === 'participant.joined')).toHaveLength(2);
    expect(complaints).toEqual([]);
  });

  test('the first call plays the other one, a preview shows the camera and fills its menu, and another page stops a camera', async () => {
    const roomId = await stage.newRoom();
    const [one, two] = await Promise.all([open(), open()]);
    await one.evaluate(`{
        const menu = document.body.appendChild(document.createElement('select'));
        sdk.preview(document.body, menu).then((tracks) => Object.assign(globalThis, { tracks, menu }));
      }`);
    await becomes(one, `globalThis.tracks?.length === 2 && menu.options[0].text !== ''`);
    await plays(one, 1, 0);
    await one.evaluate(
      `for (const track of tracks) { track.detach().forEach((element) => element.remove()); track.stop(); }`,
    );
    for (const page of [one, two]) {
      const { token } = await stage.token(roomId, 'Someone');
      await page.evaluate(
        `sdk.firstCall(${JSON.stringify(stage.url)}, ${JSON.stringify(token)}).then((call) => { globalThis.call = call; })`,
      );
    }
    await Promise.all([plays(one, 1, 1), plays(two, 1, 1)]);
    await one.evaluate(`globalThis.turn = sdk.pagesOf(call); turn([...call.participants.values()])`);
    await one.evaluate(`turn([])`);
    await plays(one, 0, 1);
    await one.evaluate(`turn([...call.participants.values()])`);
    await plays(one, 1, 1);
  });
});
