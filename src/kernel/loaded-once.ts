/** What is loaded when it is needed first, for all that need it. What has failed is tried again by the next. */
export function loadedOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | null = null;
  const loaded = async () => {
    try {
      return await load();
    } catch (error) {
      loading = null;
      throw error;
    }
  };
  return () => {
    loading ??= loaded();
    return loading;
  };
}
