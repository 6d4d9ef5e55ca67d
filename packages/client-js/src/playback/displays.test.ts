import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Display } from '../adaptation/receive-plan.js';
import type { RemoteTrack } from '../remote/participant.js';
import { Displays } from './displays.js';

type Notify = (entries: object[]) => void;
/** What the browser provides, with observers that the test fires. */
let inView: Notify;
let sizes: Notify;
let reports: [trackId: string, display: Display][];
let displays: Displays;
const page = Object.assign(new EventTarget(), { hidden: false, pictureInPictureElement: null });
const globals = globalThis as Record<string, unknown>;

const observer = (take: (notify: Notify) => void) =>
  class {
    constructor(notify: Notify) {
      take(notify);
    }
    observe(): void {}
    unobserve(): void {}
    disconnect(): void {}
  };
const elementOf = () =>
  Object.assign(new EventTarget(), { videoWidth: 1, videoHeight: 1 }) as unknown as HTMLVideoElement;
const tracks = new Map<string, RemoteTrack>();
function trackOf(trackId: string): RemoteTrack {
  const track = { trackId, participant: { participantId: 'ada', tracks } } as unknown as RemoteTrack;
  tracks.set(trackId, track);
  return track;
}
function show(target: unknown, width: number, height: number, isIntersecting = true): void {
  sizes([{ target, contentRect: { width, height } }]);
  inView([{ target, isIntersecting }]);
}
const reported = () => reports.splice(0).map(([trackId, { maxSpatial, isHidden }]) => [trackId, maxSpatial, isHidden]);

beforeEach(() => {
  jest.useFakeTimers();
  globals['document'] = page;
  globals['devicePixelRatio'] = 1;
  globals['IntersectionObserver'] = observer((notify) => (inView = notify));
  globals['ResizeObserver'] = observer((notify) => (sizes = notify));
  reports = [];
  tracks.clear();
  displays = new Displays(({ trackId }, display) => reports.push([trackId, display]));
});
afterEach(() => {
  displays.close();
  jest.useRealTimers();
  for (const name of ['document', 'devicePixelRatio', 'IntersectionObserver', 'ResizeObserver'])
    globals[name] = undefined;
});

test('a display is reported at once when the track needs more, and after a second when it needs less', () => {
  const element = elementOf();
  displays.observe(trackOf('camera'), element);
  jest.advanceTimersByTime(500);
  expect(reported()).toEqual([]);
  show(element, 320, 180);
  jest.advanceTimersByTime(250);
  expect(reported()).toEqual([['camera', 0, false]]);
  show(element, 1280, 720);
  jest.advanceTimersByTime(250);
  expect(reported()).toEqual([['camera', 2, false]]);
  show(element, 1280, 720, false);
  jest.advanceTimersByTime(900);
  expect(reported()).toEqual([]);
  jest.advanceTimersByTime(500);
  expect(reported()).toEqual([['camera', 2, true]]);
});

test('a quick scroll past a picture changes nothing, and many changes make few reports', () => {
  const element = elementOf();
  displays.observe(trackOf('camera'), element);
  show(element, 320, 180);
  jest.advanceTimersByTime(250);
  reported();
  for (let at = 0; at < 50; at += 1) {
    show(element, 320, 180, at % 2 === 1);
    jest.advanceTimersByTime(20);
  }
  jest.advanceTimersByTime(2000);
  expect(reported()).toEqual([]);
  for (let at = 0; at < 100; at += 1) {
    show(element, 500 + 10 * at, 300);
    jest.advanceTimersByTime(10);
  }
  expect(reports.length).toBeLessThanOrEqual(5);
});

test('a track without an element, or whose element shows another track, is hidden, unless it is gone', () => {
  const element = elementOf();
  const [first, second] = [trackOf('first'), trackOf('second')];
  const stopFirst = displays.observe(first, element);
  show(element, 320, 180);
  jest.advanceTimersByTime(250);
  const stopSecond = displays.observe(second, element);
  show(element, 320, 180);
  stopFirst();
  jest.advanceTimersByTime(2000);
  expect(reported()).toEqual([
    ['first', 0, false],
    ['second', 0, false],
    ['first', 0, true],
  ]);
  tracks.delete('second');
  stopSecond();
  jest.advanceTimersByTime(2000);
  expect(reported()).toEqual([]);
});

test('a hidden tab hides everything', () => {
  const element = elementOf();
  displays.observe(trackOf('camera'), element);
  show(element, 320, 180);
  jest.advanceTimersByTime(250);
  reported();
  page.hidden = true;
  page.dispatchEvent(new Event('visibilitychange'));
  jest.advanceTimersByTime(1500);
  expect(reported()).toEqual([['camera', 0, true]]);
  page.hidden = false;
  page.dispatchEvent(new Event('visibilitychange'));
  jest.advanceTimersByTime(250);
  expect(reported()).toEqual([['camera', 0, false]]);
});
