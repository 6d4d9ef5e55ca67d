'use client';
import { type ComponentPropsWithoutRef, forwardRef } from 'react';
import { Icon, type IconName } from './icons.js';

interface BarButtonProps extends ComponentPropsWithoutRef<'button'> {
  icon: IconName;
  label: string;
  shortcut?: string | undefined;
}

/** A button of the control bar: an icon, its label, and the key that presses it. */
export const BarButton = forwardRef<HTMLButtonElement, BarButtonProps>(function BarButton(
  { icon, label, shortcut, children, ...props },
  ref,
) {
  const title = shortcut === undefined ? label : `${label} (${shortcut.toUpperCase()})`;
  return (
    <button ref={ref} type="button" className="cp-button" title={title} aria-keyshortcuts={shortcut} {...props}>
      <Icon name={icon} />
      <span className="cp-text">{label}</span>
      {children}
    </button>
  );
});
