'use client';
import type { LocalTrack } from '@callplane/client-js';
import { type ReactNode, type SubmitEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { DeviceChoiceContext } from '../devices.js';
import type { Constraints } from '../local-media.js';
import { type Preview, type PreviewSource, usePreview } from '../preview.js';
import { readable, readableCode, type Texts, TEXTS, TextsContext, useTexts } from '../texts.js';
import { BarButton } from './bar-button.js';
import { ConnectionTest, type ConnectionToTest } from './connection-test.js';
import { DevicePicker } from './device-picker.js';
import { Media } from './media.js';
import { classes } from './ui.js';

type Fields = Readonly<Record<string, string>>;

export interface PreJoinProps {
  title?: ReactNode;
  /** Called with the open devices, which are the `tracks` of the call, and the fields in `children`. */
  onJoin: (tracks: readonly LocalTrack[], fields: Fields) => Promise<void> | void;
  /** The connection that a button tests without joining, from the fields in `children`. Without it there is no button. */
  connection?: ((fields: Fields) => Promise<ConnectionToTest> | ConnectionToTest) | undefined;
  /** Whether to begin with the microphone, and with the camera; default true. */
  audio?: boolean | undefined;
  video?: boolean | undefined;
  constraints?: Constraints | undefined;
  /** Why the last call is over, for example. */
  problem?: string | undefined;
  texts?: Partial<Texts> | undefined;
  className?: string | undefined;
  /** Whether the user has joined, and waits in the lobby: the preview stays, and the form says so. */
  isWaiting?: boolean | undefined;
  /** Fields of the form, such as the user's name. */
  children?: ReactNode;
}

/** Before a call: the user's camera, the level of the microphone, the devices, and a button to join. */
export function PreJoin({ texts, ...props }: PreJoinProps) {
  const all = useMemo(() => ({ ...TEXTS, ...texts }), [texts]);
  return (
    <TextsContext.Provider value={all}>
      <Form {...props} />
    </TextsContext.Provider>
  );
}

function Form({
  title,
  onJoin,
  connection,
  audio,
  video,
  constraints,
  problem: given = '',
  isWaiting = false,
  className,
  children,
}: PreJoinProps) {
  const texts = useTexts();
  const preview = usePreview({ audio, video, constraints });
  const [isJoining, setJoining] = useState(false);
  const [problem, setProblem] = useState(given);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (document.activeElement !== document.body) return;
    form.current?.querySelector<HTMLElement>('input:placeholder-shown, [type=submit]')?.focus();
  }, []);
  const submit = async (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = fieldsOf(event.currentTarget);
    setJoining(true);
    setProblem('');
    try {
      await onJoin(await preview.keep(true), fields);
    } catch (error) {
      void preview.keep(false);
      setProblem(readable(texts, error));
    } finally {
      setJoining(false);
    }
  };
  return (
    <DeviceChoiceContext.Provider value={preview}>
      <form ref={form} className={classes('cp-prejoin', className)} onSubmit={(event) => void submit(event)}>
        <PreviewPicture preview={preview} />
        <div className="cp-fields">
          {title !== undefined && <h1>{title}</h1>}
          {children}
          <DevicePicker kind="audioinput" />
          <DevicePicker kind="videoinput" />
          <button type="submit" className="cp-button cp-primary" disabled={isJoining || isWaiting}>
            {isWaiting ? texts.waiting : isJoining ? texts.joining : texts.join}
          </button>
          <p role="status">{isWaiting && texts.waitingSoon}</p>
          <p className="cp-problem" role="alert">
            {problem}
          </p>
          {connection !== undefined && (
            <ConnectionTest connection={() => connection(form.current === null ? {} : fieldsOf(form.current))} />
          )}
        </div>
      </form>
    </DeviceChoiceContext.Provider>
  );
}

function fieldsOf(form: HTMLFormElement): Fields {
  const isText = (field: [string, unknown]): field is [string, string] => typeof field[1] === 'string';
  return Object.fromEntries([...new FormData(form)].filter(isText));
}

function PreviewPicture({ preview: { tracks, failures, isPending, setOn } }: { preview: Preview }) {
  const texts = useTexts();
  const [hasPicture, setPicture] = useState(false);
  const onPicture = useCallback((isShown: boolean) => setPicture(isShown), []);
  const microphone = tracks.find(({ source }) => source === 'microphone');
  const camera = tracks.find(({ source }) => source === 'camera');
  const toggle = (source: PreviewSource, isOn: boolean) => ({
    icon: isOn ? source : (`${source}-off` as const),
    label: source === 'microphone' ? (isOn ? texts.mute : texts.unmute) : isOn ? texts.stopCamera : texts.startCamera,
    'data-off': !isOn,
    'aria-busy': isPending,
    onClick: () => void setOn(source, !isOn),
  });
  const why = failures.map((failure) => readableCode(texts, failure, [failure.source]));
  return (
    <div className="cp-fields">
      <div
        className="cp-tile cp-preview"
        role="group"
        aria-label={texts.yourCamera}
        data-own=""
        data-dark={!hasPicture || undefined}
      >
        {camera !== undefined && <Media key={camera.mediaStreamTrack.id} track={camera} onPicture={onPicture} />}
        {!hasPicture && <p>{isPending ? '' : texts.cameraOff}</p>}
        <div className="cp-bar">
          <BarButton {...toggle('microphone', microphone !== undefined)} />
          <BarButton {...toggle('camera', camera !== undefined)} />
        </div>
      </div>
      <Level media={microphone?.mediaStreamTrack} />
      <p className="cp-problem" role="status">
        {why.length > 0 && `${[...new Set(why)].join(' ')} ${texts.withoutIt}`}
      </p>
    </div>
  );
}

/** How loud the microphone is, drawn without a render of React. */
function Level({ media }: { media: MediaStreamTrack | undefined }) {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (media === undefined) return undefined;
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    const samples = new Float32Array(analyser.fftSize);
    context.createMediaStreamSource(new MediaStream([media])).connect(analyser);
    let frame = 0;
    const draw = () => {
      analyser.getFloatTimeDomainData(samples);
      const loudness = Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
      bar.current?.style.setProperty('--cp-level', Math.min(1, loudness * LOUD).toFixed(2));
      frame = requestAnimationFrame(draw);
    };
    draw();
    // Browsers start no sound before the user has touched the page.
    const resume = () => void context.resume();
    addEventListener('pointerdown', resume);
    addEventListener('keydown', resume);
    const element = bar.current;
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener('pointerdown', resume);
      removeEventListener('keydown', resume);
      element?.style.removeProperty('--cp-level');
      void context.close();
    };
  }, [media]);
  return <span ref={bar} className="cp-level" aria-hidden="true" />;
}

/** A voice near the microphone has a loudness of about 0.2. */
const LOUD = 5;
