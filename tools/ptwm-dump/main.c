#include "dump.h"

int main(int argc, char **argv)
{
    return dump_run(argc, argv, stdout, stderr);
}
