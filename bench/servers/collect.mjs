// Loaded before a server whose memory is measured (with --expose-gc): SIGUSR2 collects its garbage, which is none of
// what it holds.
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  console.log('collected');
});
