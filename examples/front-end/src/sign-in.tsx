import { useState } from 'react';
import { Client, type CombinedError, fetchExchange } from 'urql';
import { URL_OF_SERVICE } from './client';
import { LoginDocument, type LoginMutation } from './generated/documents';
import { Problem } from './problem';

// without a session: nothing to refresh, and nothing to keep
const client = new Client({ url: URL_OF_SERVICE, exchanges: [fetchExchange], preferGetMethod: false });

export function SignIn({ onSignedIn }: { onSignedIn: (login: LoginMutation['login']) => void }) {
  const [error, setError] = useState<CombinedError>();
  const [isBusy, setIsBusy] = useState(false);
  const signIn = async (form: FormData) => {
    setIsBusy(true);
    const input = { username: textOf(form, 'username'), password: textOf(form, 'password') };
    const answer = await client.mutation(LoginDocument, { input }).toPromise();
    setIsBusy(false);
    setError(answer.error);
    if (answer.data) onSignedIn(answer.data.login);
  };
  return (
    <main>
      <h1>Sign in</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void signIn(new FormData(event.currentTarget));
        }}
      >
        <label>
          User name or e-mail address
          <input name="username" autoComplete="username" required />
        </label>
        <label>
          Password
          <input name="password" type="password" autoComplete="current-password" required />
        </label>
        <button type="submit" disabled={isBusy}>
          Sign in
        </button>
        <Problem error={error} />
      </form>
    </main>
  );
}

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value : '';
}
