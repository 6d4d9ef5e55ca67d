import type { ButtonHTMLAttributes } from 'react';
import { Icon, type IconName } from './icons.js';

/** A button with a text. While `isBusy` it ignores clicks and says so to screen readers. */
export function Button({
  kind = 'plain',
  icon,
  isBusy = false,
  children,
  className = '',
  onClick,
  ...rest
}: {
  kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  icon?: IconName;
  isBusy?: boolean;
} & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      className={`button ${kind} ${className}`}
      aria-busy={isBusy}
      aria-disabled={isBusy || undefined}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function IconButton({
  icon,
  label,
  className = '',
  ...rest
}: { icon: IconName; label: string } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      className={`button quiet icon-button ${className}`}
      aria-label={label}
      title={label}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  );
}
