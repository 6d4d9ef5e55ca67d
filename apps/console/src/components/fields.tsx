import { useEffect, useId, useState, type ComponentProps, type ReactNode } from 'react';
import { asApiError } from '../api/api-error.js';
import { useQueryParameters } from '../navigation/location.js';
import { Button } from './button.js';
import { ErrorText } from './states.js';
import { Icon } from './icons.js';

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

/** Values with their texts. In a filter, the empty value shows all. */
export type Options = readonly (readonly [value: string | number, text: string])[];

export function Select({
  options,
  onValue,
  ...rest
}: { options: Options; onValue: (value: string) => void } & ComponentProps<'select'>) {
  return (
    <select {...rest} onChange={({ target }) => onValue(target.value)}>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
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

export function FormError({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <div role="alert" className="form-error">
      <ErrorText error={asApiError(error)} />
    </div>
  );
}

export function FormEnd({
  error,
  action,
  isBusy,
  onCancel,
}: {
  error: unknown;
  action: string;
  isBusy: boolean;
  onCancel: () => void;
}) {
  return (
    <>
      <FormError error={error} />
      <div className="row dialog-actions">
        <Button onClick={onCancel}>Cancel</Button>
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {action}
        </Button>
      </div>
    </>
  );
}

export function Filters({ children }: { children: ReactNode }) {
  return (
    <div className="row filters" role="search" aria-label="Filters">
      {children}
    </div>
  );
}

interface FilterProps {
  label: string;
  name: string;
}

/** The frame of a filter, with its label. */
function Filter({ label, kind = '', children }: { label: string; kind?: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className={`filter ${kind}`}>
      <label className="label" htmlFor={id}>
        {label}
      </label>
      {children(id)}
    </div>
  );
}

/** @param also other changes of a choice */
export function SelectFilter({
  label,
  name,
  options,
  unset = '',
  also = () => ({}),
}: FilterProps & { options: Options; unset?: string; also?: (value: string) => Record<string, string> }) {
  const [parameters, change] = useQueryParameters();
  const onValue = (value: string) => change({ [name]: value, ...also(value) });
  return (
    <Filter label={label}>
      {(id) => <Select id={id} options={options} value={parameters.get(name) ?? unset} onValue={onValue} />}
    </Filter>
  );
}

export function TimeFilter({ label, name }: FilterProps) {
  const [parameters, change] = useQueryParameters();
  return (
    <Filter label={label}>
      {(id) => (
        <input
          id={id}
          type="datetime-local"
          value={parameters.get(name) ?? ''}
          onChange={({ target }) => change({ [name]: target.value })}
        />
      )}
    </Filter>
  );
}

const TYPING_MS = 300;

/** A filter that takes effect when the reader pauses. */
export function TextFilter({ label, name, placeholder }: FilterProps & { placeholder: string }) {
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
    <Filter label={label} kind="search">
      {(id) => (
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
      )}
    </Filter>
  );
}
