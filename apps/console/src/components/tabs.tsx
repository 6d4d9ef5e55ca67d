import { useEffect, useId, type KeyboardEvent, type ReactNode } from 'react';
import { useQueryParameters } from '../navigation/location.js';

export interface Tab {
  /** Part of the address: `?tab=timeline`. */
  name: string;
  label: ReactNode;
  content: () => ReactNode;
}

/** Tabs after the pattern of the ARIA guide: arrow keys move between them, and the address contains the chosen one. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const [parameters, change] = useQueryParameters();
  const id = useId();
  const chosen = tabs.find(({ name }) => name === parameters.get('tab')) ?? tabs[0];
  const choose = (name: string) => change({ tab: name === tabs[0]?.name ? '' : name });
  const chosenId = id + (chosen?.name ?? '');
  // In a narrow window, the chosen tab of a link may be outside of the row.
  useEffect(() => {
    const show = () => showInRow(document.getElementById(chosenId));
    show();
    window.addEventListener('resize', show);
    return () => window.removeEventListener('resize', show);
  }, [chosenId]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || chosen === undefined) return;
    event.preventDefault();
    const next = tabs.at((tabs.indexOf(chosen) + step) % tabs.length);
    if (next === undefined) return;
    choose(next.name);
    document.getElementById(`${id}${next.name}`)?.focus();
  };
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} className="tab-list" onKeyDown={onKeyDown}>
        {tabs.map(({ name, label: text }) => (
          <button
            key={name}
            id={id + name}
            type="button"
            role="tab"
            aria-selected={name === chosen?.name}
            aria-controls={`${id}panel`}
            tabIndex={name === chosen?.name ? 0 : -1}
            onClick={() => choose(name)}
          >
            {text}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={chosenId} className="tab-panel">
        {chosen?.content()}
      </div>
    </div>
  );
}

/** Scrolls a row until one of its tabs is in it. `scrollIntoView` would also scroll the page. */
function showInRow(tab: HTMLElement | null): void {
  const row = tab?.parentElement;
  if (tab === null || !row) return;
  const [inner, outer] = [tab.getBoundingClientRect(), row.getBoundingClientRect()];
  row.scrollLeft += Math.max(0, inner.right - outer.right) - Math.max(0, outer.left - inner.left);
}
