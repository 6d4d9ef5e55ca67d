import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/refresh.js';
import { ConfirmProvider } from './components/dialog.js';
import { ToastProvider } from './components/toasts.js';
import { SessionGate } from './session/session-gate.js';
import { currentPath } from './navigation/location.js';
import { preloadPage } from './shell/routes.js';
import { Shell } from './shell/shell.js';
import { applyTheme } from './shell/theme.js';
import { LiveProvider } from './stream/live.js';

applyTheme();
preloadPage(currentPath());
const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no element "root".');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <ToastProvider>
        <SessionGate>
          <LiveProvider>
            <ConfirmProvider>
              <Shell />
            </ConfirmProvider>
          </LiveProvider>
        </SessionGate>
      </ToastProvider>
    </QueryClientProvider>
  </StrictMode>,
);
