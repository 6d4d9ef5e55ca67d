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

/** `emptyTimeoutSeconds` of a room, in minutes. */
export function EmptyTimeoutField({ value, onChange }: TextProps) {
  return (
    <Field
      label="Minutes until it ends while it is empty"
      hint="1 minute to 7 days, also if nobody joins. Without a number, the setting of the deployment."
    >
      {(attributes) => (
        <input
          {...attributes}
          type="number"
          min={1}
          max={10_080}
          step="any"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function minutesOf(emptyTimeoutSeconds: number | null): string {
  return emptyTimeoutSeconds === null ? '' : String(emptyTimeoutSeconds / 60);
}

/** The inverse of {@link minutesOf}. */
export function emptyTimeoutOf(minutes: string): number | null {
  return minutes === '' ? null : Math.round(Number(minutes) * 60);
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
