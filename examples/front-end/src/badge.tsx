import { useSubscription } from 'urql';
import { UnreadNotificationsDocument } from './generated/documents';

/** How many notifications are unread: at once, and again with each change. */
export function Badge() {
  const [{ data }] = useSubscription({ query: UnreadNotificationsDocument });
  const count = data?.unreadNotifications.unreadCount;
  return <output aria-label="Unread notifications">{count}</output>;
}
