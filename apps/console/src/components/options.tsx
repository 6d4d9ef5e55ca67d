import {
  optionEntries,
  optionText,
  type Option,
  type OptionTable,
  type OptionValue,
  type OptionValues,
  type RecordingInput,
} from '@callplane/core/options';
import { useState } from 'react';
import { durationText } from '../format.js';
import { Check, Field, InputField, Select } from './fields.js';

/** The inputs of a table of options. */
export function OptionFields<Table extends OptionTable>({
  table,
  values,
  set,
}: {
  table: Table;
  values: OptionValues<Table>;
  set: (changes: Partial<OptionValues<Table>>) => void;
}) {
  return optionEntries(table, values).map(([name, option, value]) => (
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
      return <HeadersField option={option} value={value as Record<string, string>} onValue={onValue} />;
    case 'integer':
      return <NumberField option={option} value={value} onValue={onValue} />;
  }
}

/** One header a line. The values that a read shows are masks, so a change asks for all of them again. */
function HeadersField({
  option,
  value,
  onValue,
}: {
  option: Option;
  value: Record<string, string>;
  onValue: (value: Record<string, string>) => void;
}) {
  const [typed, setTyped] = useState<string>();
  const shown = Object.entries(value).map(([name, text]) => `${name}: ${text}`);
  const [label, hint] = option.input;
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={3}
          autoComplete="off"
          spellCheck={false}
          value={typed ?? shown.join('\n')}
          onChange={({ target }) => {
            setTyped(target.value);
            onValue(headersOf(target.value));
          }}
        />
      )}
    </Field>
  );
}

function headersOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...rest] = line.split(':');
      return [name.trim(), rest.join(':').trim()];
    }),
  );
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
