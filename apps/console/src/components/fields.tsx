import { useEffect, useId, useState, type ComponentProps, type ReactNode } from 'react';
import { asApiError } from '../api/api-error.js';
import { useQueryParameters } from '../navigation/location.js';
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
    <div className="stack field">
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
  value: string | number;
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

/** The row of filters above a list, which are parameters of the address. */
export function Filters({ children }: { children: ReactNode }) {
  return (
    <div className="row filters" role="search" aria-label="Filters">
      {children}
    </div>
  );
}

interface FilterProps {
  label: string;
  /** The parameter of the address. */
  name: string;
}

/** Values with their texts; the empty value shows all. */
export type Options = readonly (readonly [value: string, text: string])[];

/** @param also what a choice changes besides */
export function SelectFilter({
  label,
  name,
  options,
  unset = '',
  also = () => ({}),
}: FilterProps & { options: Options; unset?: string; also?: (value: string) => Record<string, string> }) {
  const id = useId();
  const [parameters, change] = useQueryParameters();
  return (
    <div className="filter">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <select
        id={id}
        value={parameters.get(name) ?? unset}
        onChange={({ target: { value } }) => change({ [name]: value, ...also(value) })}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function TimeFilter({ label, name }: FilterProps) {
  const id = useId();
  const [parameters, change] = useQueryParameters();
  return (
    <div className="filter">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        type="datetime-local"
        value={parameters.get(name) ?? ''}
        onChange={({ target }) => change({ [name]: target.value })}
      />
    </div>
  );
}

const TYPING_MS = 300;

/** A filter that takes effect when the reader pauses. */
export function TextFilter({ label, name, placeholder }: FilterProps & { placeholder: string }) {
  const id = useId();
  const [parameters, change] = useQueryParameters();
  const value = parameters.get(name) ?? '';
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed.trim() === value) return undefined;
    const timer = setTimeout(() => change({ [name]: typed.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <div className="filter search">
      <label className="label" htmlFor={id}>
        {label}
      </label>
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
