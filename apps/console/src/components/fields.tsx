import { useEffect, useId, useState, type ComponentProps, type ReactNode } from 'react';
import { asApiError } from '../api/api-error.js';
import { Button } from './button.js';
import { DialogActions } from './dialog.js';
import { ErrorText } from './states.js';
import { Icon } from './icons.js';

/** A field of a form with its label, a hint and what is wrong with its value. */
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string;
  hint?: ReactNode;
  problem?: string | undefined;
  /** The control; takes the attributes that connect it with label, hint and problem. */
  children: (attributes: { id: string; 'aria-describedby': string; 'aria-invalid': boolean }) => ReactNode;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-more`, 'aria-invalid': problem !== undefined })}
      <div id={`${id}-more`}>
        {hint !== undefined && <p className="field-hint">{hint}</p>}
        {problem !== undefined && <p className="field-problem">{problem}</p>}
      </div>
    </div>
  );
}

/** A {@link Field} of one line; takes the attributes of its input as well. */
export function InputField({
  label,
  hint,
  onValue,
  ...rest
}: {
  label: string;
  hint?: ReactNode;
  value: string;
  onValue: (value: string) => void;
} & ComponentProps<'input'>) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => <input {...attributes} {...rest} onChange={(event) => onValue(event.target.value)} />}
    </Field>
  );
}

export function Check({ label, hint, ...rest }: { label: ReactNode; hint?: string } & ComponentProps<'input'>) {
  const id = useId();
  return (
    <div className="check">
      <input type="checkbox" id={id} {...rest} />
      <label htmlFor={id}>
        {label}
        {hint !== undefined && <span className="field-hint">{hint}</span>}
      </label>
    </div>
  );
}

/** Why the request of a form failed. */
export function FormError({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <div role="alert" className="form-error">
      <ErrorText error={asApiError(error)} />
    </div>
  );
}

/** The end of a form in a dialog: what went wrong, and its buttons. */
export function FormEnd({
  error,
  action,
  isBusy,
  isDangerous = false,
  onCancel,
}: {
  error: unknown;
  /** The verb of the button. */
  action: string;
  isBusy: boolean;
  isDangerous?: boolean;
  onCancel: () => void;
}) {
  return (
    <>
      <FormError error={error} />
      <DialogActions>
        <Button onClick={onCancel}>Cancel</Button>
        <Button kind={isDangerous ? 'danger' : 'primary'} type="submit" isBusy={isBusy}>
          {action}
        </Button>
      </DialogActions>
    </>
  );
}

/** The row of filters above a list. */
export function Filters({ children }: { children: ReactNode }) {
  return (
    <div className="filters" role="search" aria-label="Filters">
      {children}
    </div>
  );
}

export function SelectFilter({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  /** Values with their texts; the empty value shows all. */
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div className="filter">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

const TYPING_MS = 300;

/** A filter that takes effect when the reader pauses. */
export function TextFilter({
  label,
  value,
  placeholder,
  onChange,
}: {
  label: string;
  value: string;
  placeholder?: string;
  onChange: (value: string) => void;
}) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => onChange(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <div className="filter search">
      <label htmlFor={id}>{label}</label>
      <span className="search-box">
        <Icon name="search" />
        <input
          id={id}
          type="search"
          autoComplete="off"
          spellCheck={false}
          value={typed}
          placeholder={placeholder}
          onChange={(event) => setTyped(event.target.value)}
        />
      </span>
    </div>
  );
}
