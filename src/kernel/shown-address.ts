/**
 * The address of a client as people write it. Of IPv6, requests know the network alone, as the numbers that limits
 * count by.
 */
export function shownAddress(ip: string): string {
  if (!/^\d+(?::\d+){3}$/.test(ip)) return ip;
  const parts = ip.split(':').map((part) => Number(part).toString(16));
  while (parts.at(-1) === '0') parts.pop();
  return `${parts.join(':')}::/64`;
}
