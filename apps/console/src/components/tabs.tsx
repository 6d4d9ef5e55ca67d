import { useId, type KeyboardEvent, type ReactNode } from 'react';
import { useQueryParameters } from '../navigation/location.js';

interface Tab {
  /** Part of the address: `?tab=timeline`. */
  name: string;
  label: string;
  content: () => ReactNode;
}

/** Tabs after the pattern of the ARIA guide: arrow keys move between them, and the address contains the chosen one. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const [parameters, change] = useQueryParameters();
  const id = useId();
  const chosen = tabs.find(({ name }) => name === parameters.get('tab')) ?? tabs[0];
  const choose = (name: string) => change({ tab: name === tabs[0]?.name ? '' : name });
  const chosenId = id + (chosen?.name ?? '');
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
    <div>
      <div role="tablist" aria-label={label} className="row tab-list" onKeyDown={onKeyDown}>
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
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={chosenId}>
        {chosen?.content()}
      </div>
    </div>
  );
}
