/* A vendor's library that is opened when it is first needed.  C11 and C++. */
#ifndef METAFORK_LIBRARY_H
#define METAFORK_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A function by its name, and where its address goes. */
typedef struct metafork_symbol {
    const char *name;
    void *place;
} metafork_symbol;

/* Open a library and find its functions; NULL where there is none, or where it lacks one of them (`lacks`). */
static inline void *metafork_library_open(const char *path, const metafork_symbol *wanted, size_t count, bool *lacks) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *lacks = false;
    for (size_t i = 0; library != NULL && i < count; i++) {
        void *const symbol = dlsym(library, wanted[i].name);
        if (symbol == NULL) {
            dlclose(library);
            *lacks = true;
            return NULL;
        }
        memcpy(wanted[i].place, &symbol, sizeof symbol);
    }
    return library;
}

#endif
