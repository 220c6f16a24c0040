#include "dump.h"

#if defined(_WIN32)
#include <stdlib.h>

#include "win32.h"

int main(int argc, char **argv)
{
    char **words = win32_arguments(&argc);
    int status;

    win32_prepare_output();
    status = dump_run(argc, words != NULL ? words : argv, stdout, stderr);
    win32_restore_console();
    free(words);
    return status;
}
#else
int main(int argc, char **argv)
{
    return dump_run(argc, argv, stdout, stderr);
}
#endif
