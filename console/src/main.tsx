import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { Provider } from 'urql';
import { begunStates } from './ground/begun-states';
import { client } from './ground/client';
import { applyTheme } from './ground/theme';
import { router } from './router';
import './style.css';

applyTheme();
// a page that the browser has kept, to go back to, may be of somebody who has signed out since
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
// a page that was loaded again takes the codes of the authorizations that its former self has begun
if (begunStates.any()) void import('./ground/connecting');
const place = document.getElementById('root');
if (!place) throw new Error("The page has no 'root'.");
createRoot(place).render(
  <Provider value={client}>
    <RouterProvider router={router} />
  </Provider>,
);
