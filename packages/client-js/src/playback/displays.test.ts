import type { Display } from '../subscriptions.js';
import { displayOf, Displays, type Listed, type Shown } from './displays.js';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';

type Notify = (entries: object[]) => void;
/** What the browser provides, with observers that the test fires. */
let inView: Notify;
let sizes: Notify;
let reports: [trackId: string, display: Display][];
let displays: Displays;
/** A window, whose observers report through `inView` and `sizes` from its first observation on. */
const windowOf = () => ({
  devicePixelRatio: 1,
  IntersectionObserver: observer((notify) => (inView = notify)),
  ResizeObserver: observer((notify) => (sizes = notify)),
});
const pageOf = () =>
  Object.assign(new EventTarget(), { hidden: false, pictureInPictureElement: null, defaultView: windowOf() });
let page: ReturnType<typeof pageOf>;

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
  Object.assign(new EventTarget(), {
    videoWidth: 1,
    videoHeight: 1,
    ownerDocument: page,
  }) as unknown as HTMLVideoElement;
const trackOf = (trackId: string): Listed => ({ participantId: 'ada', trackId, isListed: true });
function show(target: unknown, width: number, height: number, isIntersecting = true): void {
  sizes([{ target, contentRect: { width, height } }]);
  inView([{ target, isIntersecting }]);
}
const reported = () => reports.splice(0).map(([trackId, { maxSpatial, isHidden }]) => [trackId, maxSpatial, isHidden]);

beforeEach(() => {
  jest.useFakeTimers();
  page = pageOf();
  reports = [];
  displays = new Displays(({ trackId }, display) => reports.push([trackId, display]));
});
afterEach(() => {
  displays.close();
  jest.useRealTimers();
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

test('a track without an element, or whose element shows another track, is hidden, unless it is gone', () => {
  const element = elementOf();
  const [first, second] = [trackOf('first'), trackOf('second')];
  displays.observe(first, element);
  show(element, 320, 180);
  jest.advanceTimersByTime(250);
  displays.observe(second, element);
  show(element, 320, 180);
  displays.stop(first, element);
  jest.advanceTimersByTime(2000);
  expect(reported()).toEqual([
    ['first', 0, false],
    ['second', 0, false],
    ['first', 0, true],
  ]);
  second.isListed = false;
  displays.stop(second, element);
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

test('an element in another window is displayed there, also if it is moved while it plays', () => {
  const element = elementOf();
  displays.observe(trackOf('camera'), element);
  show(element, 320, 180);
  jest.advanceTimersByTime(250);
  const popUp = pageOf();
  popUp.defaultView.devicePixelRatio = 2;
  Object.assign(element, { ownerDocument: popUp });
  show(element, 0, 0, false);
  page.hidden = true;
  page.dispatchEvent(new Event('visibilitychange'));
  element.dispatchEvent(new Event('timeupdate'));
  show(element, 320, 180);
  jest.advanceTimersByTime(2000);
  expect(reported()).toEqual([
    ['camera', 0, false],
    ['camera', 1, false],
  ]);
  popUp.hidden = true;
  popUp.dispatchEvent(new Event('visibilitychange'));
  jest.advanceTimersByTime(2000);
  expect(reported()).toEqual([['camera', 1, true]]);
});

const visible = { isHidden: false, pixelRatio: 1, floating: null };
const shown = (width: number, height: number, more: Partial<Shown> = {}): Shown => ({
  element: { videoWidth: 1, videoHeight: 1 },
  isInView: true,
  width,
  height,
  page: visible,
  ...more,
});
const layerOf = (width: number, height: number, before?: number) =>
  displayOf(
    [shown(width, height)],
    before === undefined ? undefined : { maxSpatial: before, isHidden: false, pixels: 0 },
  ).maxSpatial;

describe('a displayed track', () => {
  test('needs the layer of its size, in pixels of the screen', () => {
    expect([layerOf(320, 180), layerOf(440, 248), layerOf(640, 360), layerOf(1280, 720)]).toEqual([0, 0, 1, 2]);
    expect(displayOf([shown(320, 180, { page: { ...visible, pixelRatio: 2 } })], undefined)).toEqual({
      maxSpatial: 1,
      isHidden: false,
      pixels: 640 * 360,
    });
    // A portrait is as large as a landscape.
    expect(layerOf(180, 320)).toBe(0);
  });

  test('needs what the largest of its visible elements needs', () => {
    const elements = [shown(320, 180), shown(1280, 720, { isInView: false }), shown(640, 360)];
    expect(displayOf(elements, undefined)).toEqual({ maxSpatial: 1, isHidden: false, pixels: 640 * 360 });
  });
});
