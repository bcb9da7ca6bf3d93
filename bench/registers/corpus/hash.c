void hash_words(int n, int rounds, int B, const unsigned long long *in, unsigned long long *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    unsigned long long h = 14695981039346656037ULL, x = in[i];
    for (int r = 0; r < rounds; ++r) {
      h ^= x >> 8 * (r & 7) & 255;
      h *= 1099511628211ULL;
      h ^= h >> 29;
    }
    out[i] = h;
  }
}
void hash_ints(int n, int B, const unsigned int *in, unsigned int *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    unsigned int h = in[i];
    h ^= h >> 16;
    h *= 2246822507U;
    h ^= h >> 13;
    h *= 3266489909U;
    h ^= h >> 16;
    out[i] = h;
  }
}
