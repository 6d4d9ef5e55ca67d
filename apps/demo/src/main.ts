import { CallplaneError, isSupported } from '@callplane/client-js';
import { enterCall } from './call-page.js';
import { button, element, readable } from './elements.js';
import { showLobby } from './lobby.js';

const problem = element('join-problem', HTMLParagraphElement);

function lobby(message = ''): void {
  problem.textContent = message;
  showLobby((entry) =>
    enterCall(entry, ({ reason, message: why }) =>
      lobby(reason === 'left' ? '' : readable(new CallplaneError(reason, why))),
    ),
  );
}

if (isSupported()) lobby();
else {
  element('lobby', HTMLElement).hidden = false;
  button('join-button').disabled = true;
  problem.textContent = 'This browser cannot take part in calls. Use a current Chrome, Edge, Firefox or Safari.';
}
