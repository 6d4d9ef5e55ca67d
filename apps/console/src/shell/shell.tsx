import { OPERATIONS, type OperationId } from '@callplane/server/requests';
import { useQueryClient } from '@tanstack/react-query';
import { Component, type ReactNode, Suspense, useEffect, useState } from 'react';
import { curlOf } from '../api/curl.js';
import { Button, IconButton } from '../components/button.js';
import { Dialog } from '../components/dialog.js';
import { Icon } from '../components/icons.js';
import { Page } from '../components/layout.js';
import { Empty, Failure, Loading } from '../components/states.js';
import { Badge, Code } from '../components/text.js';
import { Link, usePath } from '../navigation/location.js';
import { useSession } from '../session/session.js';
import { streamState } from '../stream/live.js';
import type { StreamState } from '../stream/stream.js';
import { NAVIGATION, routeOf } from './routes.js';

const NAVIGATION_ID = 'navigation';

export function Shell() {
  const path = usePath();
  const { signOut } = useSession();
  useEffect(() => {
    document.getElementById(NAVIGATION_ID)?.hidePopover();
    window.scrollTo({ top: 0 });
  }, [path]);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <div className="topbar">
        <IconButton icon="menu" label="Navigation" popoverTarget={NAVIGATION_ID} />
        <Brand />
        <LiveState />
      </div>
      {/* In a narrow window it covers the page; a wide one always shows it. */}
      <aside className="sidebar" id={NAVIGATION_ID} popover="auto">
        <Brand />
        <Navigation path={path} />
        <div className="stack sidebar-end">
          <LiveState />
          <Tenant />
          <PageRequests />
          <Button kind="quiet" icon="leave" onClick={signOut}>
            Sign out
          </Button>
        </div>
      </aside>
      <main id="main" className="main" tabIndex={-1}>
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
  return <route.Page key={path} parameters={route.parameters} />;
}

function Brand() {
  return (
    <Link to="/" className="row brand">
      <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="28" height="28" />
      Callplane
    </Link>
  );
}

function Navigation({ path }: { path: string }) {
  const { scopes } = useSession();
  const section = routeOf(path)?.section;
  const shown = NAVIGATION.filter(({ scope }) => scope === undefined || scopes.includes(scope));
  return (
    <nav aria-label="Console">
      {shown.map(({ to, label, icon }) => (
        <Link key={to} to={to} className="button quiet" aria-current={to === section ? 'page' : undefined}>
          <Icon name={icon} />
          {label}
        </Link>
      ))}
    </nav>
  );
}

function Tenant() {
  const { environmentId, session } = useSession();
  return (
    <div className="small tenant">
      {session !== undefined && (
        <p>
          <strong>{session.projectName}</strong> / {session.environmentName}
        </p>
      )}
      <code className="quiet cut" title={environmentId}>
        {environmentId}
      </code>
      {session?.readOnly === true && <Badge tone="busy">read only</Badge>}
    </div>
  );
}

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

function LiveState() {
  const state = streamState.use();
  return (
    <span className="row quiet small live" role="status" data-state={state}>
      {state !== 'off' && TEXTS[state]}
    </span>
  );
}

/** A button that shows the requests behind the current page as curl commands: the console does nothing else. */
function PageRequests() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="quiet" icon="developers" onClick={() => setOpen(true)}>
        Requests
      </Button>
      {isOpen && <RequestsDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function RequestsDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const queries = client.getQueryCache().findAll({ type: 'active' });
  return (
    <Dialog side title="The requests of this page" onClose={onClose}>
      <p className="quiet">
        The console uses the public API only. Put a secret API key into <code>CALLPLANE_API_KEY</code> to send the same
        requests.
      </p>
      {queries.map(({ queryHash, queryKey }) => {
        const [id, input] = queryKey as [OperationId, object];
        const { method, path } = OPERATIONS[id];
        return (
          <div key={queryHash} className="stack tight request">
            <h3>
              {method} {path}
            </h3>
            <Code wrap text={curlOf(id, input, location.origin)} label={`curl: ${method} ${path}`} />
          </div>
        );
      })}
    </Dialog>
  );
}
