import { Component, type ReactNode, Suspense, useEffect, useState } from 'react';
import { IconButton } from '../components/button.js';
import { Icon } from '../components/icons.js';
import { Page } from '../components/layout.js';
import { Empty, Failure, Loading } from '../components/states.js';
import { Badge } from '../components/text.js';
import { Link, usePath } from '../navigation/location.js';
import { useSession } from '../session/session.js';
import { useStreamState } from '../stream/live.js';
import type { StreamState } from '../stream/stream.js';
import { PageRequests } from './page-requests.js';
import { isInSection, NAVIGATION, routeOf } from './routes.js';
import { type Theme, useTheme } from './theme.js';

const THEME_TEXT: Record<Theme, string> = { system: 'as the system', light: 'light', dark: 'dark' };

/** Navigation and the page of the current path. */
export function Shell() {
  const path = usePath();
  const [isOpen, setOpen] = useDrawer(path);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <div className="topbar">
        <IconButton
          icon="menu"
          label={isOpen ? 'Close the navigation' : 'Open the navigation'}
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        />
        <Brand />
        <LiveState />
      </div>
      <aside className={`sidebar${isOpen ? ' open' : ''}`} id="navigation">
        <Brand />
        <Navigation path={path} />
        <SidebarEnd />
      </aside>
      <main id="main" className="main" tabIndex={-1} inert={isOpen}>
        {/* A page that failed must not keep the next one from opening. */}
        <ErrorBoundary key={path}>
          <Suspense fallback={<Loading />}>
            <CurrentPage path={path} />
          </Suspense>
        </ErrorBoundary>
      </main>
    </div>
  );
}

const NARROW = '(max-width: 899px)';

/** Whether the navigation covers the page of a narrow window. It closes with the page, with Escape and in a wide window. */
function useDrawer(path: string): [boolean, (isOpen: boolean) => void] {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    setOpen(false);
    window.scrollTo({ top: 0 });
  }, [path]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const close = () => setOpen(false);
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') close();
    };
    const width = matchMedia(NARROW);
    width.addEventListener('change', close);
    window.addEventListener('keydown', onKey);
    return () => {
      width.removeEventListener('change', close);
      window.removeEventListener('keydown', onKey);
    };
  }, [isOpen]);
  return [isOpen, setOpen];
}

function CurrentPage({ path }: { path: string }) {
  const route = routeOf(path);
  if (route === undefined) {
    return (
      <Page title="Page not found">
        <Empty icon="search" title="The console has no page at this address.">
          <Link to="/">Go to the overview</Link>
        </Empty>
      </Page>
    );
  }
  // The path as key: a page of one room must not show the state of another.
  return <route.page key={path} parameters={route.parameters} />;
}

function Brand() {
  return (
    <Link to="/" className="brand">
      <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="28" height="28" />
      Callplane
    </Link>
  );
}

function Navigation({ path }: { path: string }) {
  const { scopes } = useSession();
  const shown = NAVIGATION.filter(({ scope }) => scope === undefined || scopes.includes(scope));
  return (
    <nav aria-label="Console">
      {shown.map(({ to, label, icon }) => {
        const isHere = isInSection(path, to);
        return (
          <Link key={to} to={to} aria-current={isHere ? 'page' : undefined}>
            <Icon name={icon} />
            {label}
          </Link>
        );
      })}
    </nav>
  );
}

function SidebarEnd() {
  const { signOut } = useSession();
  const [theme, changeTheme] = useTheme();
  return (
    <div className="sidebar-end">
      <LiveState />
      <Tenant />
      <PageRequests />
      <div className="sidebar-buttons">
        <button type="button" className="button quiet" onClick={signOut}>
          <Icon name="leave" />
          Sign out
        </button>
        <IconButton
          icon={theme === 'light' ? 'sun' : theme === 'dark' ? 'moon' : 'system'}
          label={`Colours: ${THEME_TEXT[theme]}`}
          onClick={changeTheme}
        />
      </div>
    </div>
  );
}

/** Which environment the console shows, and whether it may change anything. */
function Tenant() {
  const { environmentId, session } = useSession();
  return (
    <div className="tenant">
      {session !== undefined && (
        <p>
          <strong>{session.projectName}</strong> / {session.environmentName}
        </p>
      )}
      <code title={environmentId}>{environmentId}</code>
      {session?.readOnly === true && <Badge tone="busy">read only</Badge>}
    </div>
  );
}

/** Shows an error of the console's own code in place of its part of the page. */
class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    // React keeps the failure of a page whose file could not be loaded, so only loading everything again helps.
    return <Failure error={this.state.error} onRetry={() => location.reload()} />;
  }
}

const TEXTS: Record<Exclude<StreamState, 'off'>, string> = {
  connecting: 'Connecting',
  live: 'Live',
  reconnecting: 'Reconnecting',
};

/** Whether what is on the page follows the changes. */
function LiveState() {
  const state = useStreamState();
  return (
    <span className="live" role="status" data-state={state}>
      {state !== 'off' && TEXTS[state]}
    </span>
  );
}
