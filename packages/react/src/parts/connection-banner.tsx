'use client';
import type { CallSnapshot, TrackFailure } from '@callplane/client-js';
import type { Notice } from '../companion.js';
import { useCallState } from '../context.js';
import { useCompanion, useConnectionState } from '../hooks.js';
import { Store } from '../store.js';
import { readable, readableCode, type Texts, useTexts } from '../texts.js';

const NAMES_MAX = 3;
const NO_NOTICE = new Store<Notice | undefined>(undefined);

/** One line about a lost connection, missing or undecryptable media, or a device that failed, and a button while the sound is blocked. */
export function ConnectionBanner() {
  const texts = useTexts();
  const { state, mediaState, isAudioBlocked, startAudio } = useConnectionState();
  const failures = useCallState((now) => now.failures);
  const undecryptable = useCallState(undecryptableNames);
  const notice = useCompanion((companion) => companion.notice, NO_NOTICE);
  const text =
    state === 'reconnecting'
      ? texts.away
      : mediaState === 'down'
        ? texts.errors.media_unavailable
        : textOf(texts, failures) ||
          noticeText(texts, notice) ||
          (undecryptable === '' ? '' : texts.undecryptableFrom(undecryptable));
  return (
    <>
      <p className="cp-banner" role="status" hidden={!text}>
        {text}
      </p>
      {isAudioBlocked && (
        <p className="cp-banner" role="status">
          {texts.soundBlocked}{' '}
          <button type="button" className="cp-button" onClick={startAudio}>
            {texts.playSound}
          </button>
        </p>
      )}
    </>
  );
}

function undecryptableNames({ participants }: CallSnapshot): string {
  const names = [...participants.values()]
    .filter(({ tracks }) => [...tracks.values()].some(({ isUndecryptable }) => isUndecryptable))
    .map(({ name }) => name);
  return names.length > NAMES_MAX ? `${names.slice(0, NAMES_MAX).join(', ')}, …` : names.join(', ');
}

function noticeText(texts: Texts, notice: Notice | undefined): string {
  if (notice === undefined) return '';
  return 'error' in notice ? readable(texts, notice.error) : texts.deviceGone(texts.sources[notice.source]);
}

/** Devices that could not be opened, each reason once. A screen that the user did not choose needs no message. */
function textOf(texts: Texts, failures: readonly TrackFailure[]): string {
  const all = failures
    .filter(({ source, code }) => !source.startsWith('screen') || code !== 'device_permission_denied')
    .map((failure) => readableCode(texts, failure, [failure.source]));
  return [...new Set(all)].join(' ');
}
