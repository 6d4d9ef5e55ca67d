import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/refresh.js';
import { Confirmation } from './components/dialog.js';
import { Toasts } from './components/toasts.js';
import { SessionGate } from './session/session-gate.js';
import { Shell } from './shell/shell.js';

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no element "root".');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <SessionGate>
        <Shell />
        <Confirmation />
      </SessionGate>
      <Toasts />
    </QueryClientProvider>
  </StrictMode>,
);
