import { useEffect, useState, type ReactNode } from 'react';
import { nowMs, useMovingTime } from '../moving-time.js';
import { agoText, fullTime } from '../format.js';
import { IconButton } from './button.js';

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'quiet';

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

export function Id({ value, label = 'identifier' }: { value: string; label?: string }) {
  return (
    <span className="id">
      <code className="cut">{value}</code>
      <CopyButton text={value} label={`Copy the ${label}`} />
    </span>
  );
}

const COPIED_MS = 1_500;

function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  // Browsers have a clipboard only on pages with https, and on localhost.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard === undefined) return null;
  const copy = () =>
    void clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    );
  return (
    <IconButton
      icon={isCopied ? 'check' : 'copy'}
      label={isCopied ? 'Copied' : label}
      className="copy"
      onClick={copy}
    />
  );
}

const TICK_MS = 15_000;

export function Time({ value, full = false }: { value: string | null; full?: boolean }) {
  useMovingTime(TICK_MS);
  if (value === null) return <span className="quiet">–</span>;
  return (
    <time dateTime={value} title={fullTime(value)}>
      {/* A new value may be younger than the last tick. */}
      {full ? fullTime(value) : agoText(value, nowMs())}
    </time>
  );
}

export function Code({ text, label, wrap = false }: { text: string; label: string; wrap?: boolean }) {
  return (
    <div className="code">
      <pre tabIndex={0} role="region" aria-label={label} className={wrap ? 'wrap' : ''}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label={`Copy: ${label}`} />
    </div>
  );
}

export function Json({ value, label }: { value: unknown; label: string }) {
  return <Code text={JSON.stringify(value, undefined, 2)} label={label} />;
}
