import { useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const STORED = 'callplane:theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

function storedTheme(): Theme {
  return THEMES.find((theme) => theme === localStorage.getItem(STORED)) ?? 'system';
}

/** The page has the stored theme from its first picture on. */
export function applyTheme(theme: Theme = storedTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** @returns the theme, and a function that changes to the next one */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(storedTheme);
  const change = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
    localStorage.setItem(STORED, next);
    applyTheme(next);
    setTheme(next);
  };
  return [theme, change];
}
