import { enterCall } from './call-page.js';
import { element } from './elements.js';
import { showLobby } from './lobby.js';

const problem = element('join-problem', HTMLParagraphElement);

function lobby(message = ''): void {
  problem.textContent = message;
  showLobby((entry) =>
    enterCall(entry, ({ reason, message: why }) => lobby(reason === 'left' ? '' : `${why} (${reason})`)),
  );
}

lobby();
