import type { ReactNode } from 'react';
import { Field } from '../../components/fields.js';

interface TextProps {
  value: string;
  onChange: (value: string) => void;
}

/** The name of a room or a participant: 1 to 120 characters. */
export function NameField({ label, hint, value, onChange }: TextProps & { label: string; hint?: ReactNode }) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          required
          maxLength={120}
          autoComplete="off"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** `maxParticipants` of a room. */
export function CapacityField({ hint, value, onChange }: TextProps & { hint: ReactNode }) {
  return (
    <Field label="Participants at most" hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          type="number"
          required
          min={1}
          max={100_000}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
