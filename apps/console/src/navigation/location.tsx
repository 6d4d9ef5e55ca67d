import { type AnchorHTMLAttributes, type MouseEvent, useCallback, useMemo, useSyncExternalStore } from 'react';

/** The path under which the API serves the console, without a slash at its end. */
const BASE = import.meta.env.BASE_URL.replace(/\/$/, '');
const CHANGED = 'callplane:navigated';

/** @param to path below the console, such as `/rooms`, with its query */
export function navigate(to: string, { replace = false } = {}): void {
  const url = `${BASE}${to}`;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  window.dispatchEvent(new Event(CHANGED));
}

function subscribe(onChange: () => void): () => void {
  window.addEventListener('popstate', onChange);
  window.addEventListener(CHANGED, onChange);
  return () => {
    window.removeEventListener('popstate', onChange);
    window.removeEventListener(CHANGED, onChange);
  };
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, currentPath);
}

function currentPath(): string {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : location.pathname;
  return path === '' ? '/' : path;
}

/**
 * The query of the address. Pages keep their filters and tabs in it, so that a link leads to the same view.
 * @returns the parameters, and a function that sets some of them; an empty value removes its parameter
 */
export function useQueryParameters(): [URLSearchParams, (changes: Record<string, string>) => void] {
  const search = useSyncExternalStore(subscribe, () => location.search);
  const parameters = useMemo(() => new URLSearchParams(search), [search]);
  const change = useCallback((changes: Record<string, string>) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    const query = next.toString();
    navigate(`${currentPath()}${query === '' ? '' : `?${query}`}`, { replace: true });
  }, []);
  return [parameters, change];
}

/** A link to another page of the console. `to` is the path below the console. */
export function Link({ to, onClick, ...rest }: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    // The browser opens tabs and windows itself.
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={`${BASE}${to}`} onClick={follow} {...rest} />;
}
