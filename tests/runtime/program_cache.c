/* program_cache keep KEY BYTES: so many bytes are kept under a key.  program_cache find KEY: how many there are. */
#include "metafork/program_cache.h"

int main(int argc, char **argv)
{
    const metafork_blob key = {(unsigned char *)argv[2], strlen(argv[2])};
    metafork_blob content = {NULL, 0};
    if (argc == 4) {
        content.length = (size_t)atoi(argv[3]);
        content.data = (unsigned char *)calloc(content.length, 1);
        metafork_cache_write(key, content);
    } else {
        content = metafork_cache_read(key);
        printf("%zu\n", content.length);
    }
    free(content.data);
}
