import { SignOutDocument } from '../generated/documents';
import { goToSignIn } from './address';
import { useChange } from './answers';

/** Ends the session of this browser, and leads to the page to sign in. */
export function useSignOut(): () => Promise<void> {
  const signOut = useChange(SignOutDocument);
  return async () => {
    const { error } = await signOut({});
    if (!error) goToSignIn();
  };
}
