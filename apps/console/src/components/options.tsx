import {
  optionEntries,
  optionText,
  type Option,
  type OptionTable,
  type OptionValue,
  type OptionValues,
  type RecordingInput,
  type WebhookFilter,
} from '@callplane/core/options';
import { useState } from 'react';
import { durationText } from '../format.js';
import { Check, Field, InputField, Select } from './fields.js';

/** The inputs of a table of options. */
export function OptionFields<Table extends OptionTable>({
  table,
  values,
  isNew,
  set,
}: {
  table: Table;
  values: OptionValues<Table>;
  /** Without it, the form has no inputs for options that are fixed at the creation. */
  isNew: boolean;
  set: (changes: Partial<OptionValues<Table>>) => void;
}) {
  return optionEntries(table, values)
    .filter(([, option]) => isNew || option.isFixed !== true)
    .map(([name, option, value]) => (
      <OptionField
        key={name}
        option={option}
        value={value}
        onValue={(changed) => set({ [name]: changed } as Partial<OptionValues<Table>>)}
      />
    ));
}

function OptionField(props: { option: Option; value: OptionValue; onValue: (value: OptionValue) => void }) {
  const { option, value, onValue } = props;
  const [label, hint] = option.input;
  switch (option.type) {
    case 'boolean':
      return (
        <Check label={label} hint={hint} checked={value === true} onChange={({ target }) => onValue(target.checked)} />
      );
    case 'choice':
      return (
        <Field label={label} hint={hint}>
          {(attributes) => (
            <Select {...attributes} options={Object.entries(option.texts)} value={value as string} onValue={onValue} />
          )}
        </Field>
      );
    case 'recording': {
      const modes = [['', option.none], ...Object.entries(option.texts)] as const;
      const { mode = '' } = (value ?? {}) as Partial<RecordingInput>;
      const choose = (chosen: string) => onValue(chosen === '' ? null : { mode: chosen as RecordingInput['mode'] });
      return (
        <Field label={label} hint={hint}>
          {(attributes) => <Select {...attributes} options={modes} value={mode} onValue={choose} />}
        </Field>
      );
    }
    case 'headers':
      return (
        <LinesField
          option={option}
          shown={headersText(value as Record<string, string>)}
          parse={parseHeaders}
          onValue={onValue}
        />
      );
    case 'filter': {
      const shown = value === null ? '' : JSON.stringify(value, null, 2);
      return <LinesField option={option} shown={shown} parse={parseFilter} onValue={onValue} />;
    }
    case 'integer':
      return <NumberField option={option} value={value} onValue={onValue} />;
  }
}

/** A value that is written as text of several lines. */
function LinesField<Value extends OptionValue>({
  option,
  shown,
  parse,
  onValue,
}: {
  option: Option;
  shown: string;
  /** @returns undefined for a text that has no value */
  parse: (text: string) => Value | undefined;
  onValue: (value: Value) => void;
}) {
  const [typed, setTyped] = useState<string>();
  const [label, hint] = option.input;
  const text = typed ?? shown;
  const problem = parse(text) === undefined ? 'This text cannot be read.' : undefined;
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <textarea
          {...attributes}
          ref={(element) => element?.setCustomValidity(problem ?? '')}
          rows={3}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={({ target }) => {
            setTyped(target.value);
            const value = parse(target.value);
            if (value !== undefined) onValue(value);
          }}
        />
      )}
    </Field>
  );
}

/** One header a line. The values that a read shows are masks, which the API refuses: a change writes all of them. */
const headersText = (headers: Record<string, string>) =>
  Object.entries(headers)
    .map(([name, text]) => `${name}: ${text}`)
    .join('\n');

function parseHeaders(text: string): Record<string, string> | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (!lines.every((line) => line.includes(':'))) return undefined;
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]),
  );
}

function parseFilter(text: string): WebhookFilter | null | undefined {
  if (text.trim() === '') return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && !Array.isArray(value) ? (value as WebhookFilter) : undefined;
  } catch {
    return undefined;
  }
}

/** A number, or nothing for null. Seconds are asked for in minutes. */
function NumberField({
  option,
  value,
  onValue,
}: {
  option: Extract<Option, { type: 'integer' }>;
  value: OptionValue;
  onValue: (value: number | null) => void;
}) {
  const scale = option.unit === 'seconds' ? 60 : 1;
  const parse = (text: string) => (text === '' ? null : Math.round(Number(text) * scale));
  // Keeps the typed text, such as "1.", as long as it means the value.
  const [typed, setTyped] = useState('');
  const [label, hint] = option.input;
  return (
    <InputField
      label={label}
      hint={hint}
      type="number"
      required={option.default !== null}
      min={option.min / scale}
      max={option.max / scale}
      step={scale === 1 ? 1 : 'any'}
      value={parse(typed) === value ? typed : typeof value === 'number' ? value / scale : ''}
      onValue={(text) => {
        setTyped(text);
        onValue(parse(text));
      }}
    />
  );
}

/** Labels and values of options, for `Facts`. */
export function optionFacts<Table extends OptionTable>(table: Table, values: OptionValues<Table>) {
  return optionEntries(table, values).map(([, option, value]) => {
    const isDuration = option.type === 'integer' && option.unit === 'seconds' && typeof value === 'number';
    return [option.label, isDuration ? `after ${durationText(value * 1000)}` : optionText(option, value)] as const;
  });
}
