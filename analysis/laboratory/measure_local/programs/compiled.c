#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRID = 160, STEPS = 40, BODIES = 180, SIDE = 96, WORDS = 60000 };

static double grid[2][GRID][GRID];
static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
static float x[BODIES], y[BODIES], z[BODIES], force[BODIES];
static uint32_t words[WORDS];

static uint32_t draw(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}
static double part(uint32_t *state)
{
    return draw(state) / 4294967296.0;
}

static double limited(double flux)
{
    return flux > 0.2 ? 0.2 : flux < -0.2 ? -0.2 : flux;
}

static double diffusion(void)
{
    for (int step = 0; step < STEPS; step++) {
        double(*from)[GRID] = grid[step % 2], (*to)[GRID] = grid[1 - step % 2];
        for (int i = 1; i < GRID - 1; i++)
            for (int j = 1; j < GRID - 1; j++)
                to[i][j] = from[i][j] + 0.2 * (limited(from[i - 1][j] - from[i][j]) +
                                               limited(from[i + 1][j] - from[i][j]) +
                                               limited(from[i][j - 1] - from[i][j]) +
                                               limited(from[i][j + 1] - from[i][j]));
    }
    double sum = 0.0;
    for (int i = 0; i < GRID; i++)
        for (int j = 0; j < GRID; j++)
            sum += grid[0][i][j];
    return sum;
}
static double product(void)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0.0;
            for (int k = 0; k < SIDE; k++)
                sum += a[i][k] * b[j][k];
            c[i][j] = sum;
        }
    return c[SIDE / 2][SIDE / 3];
}
static float pull(float dx, float dy, float dz)
{
    float square = dx * dx + dy * dy + dz * dz + 0.01f;
    return 1.0f / (square * sqrtf(square));
}
static double gravity(void)
{
    double sum = 0.0;
    for (int i = 0; i < BODIES; i++) {
        float of = 0.0f;
        for (int j = 0; j < BODIES; j++)
            of += pull(x[i] - x[j], y[i] - y[j], z[i] - z[j]);
        force[i] = of;
        sum += of;
    }
    return sum;
}
static int in_order(const void *one, const void *other)
{
    uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    return (left > right) - (left < right);
}
static double hashing(uint32_t *state)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < WORDS; i++) {
        words[i] = draw(state);
        for (int byte = 0; byte < 4; byte++) {
            hash ^= (words[i] >> (8 * byte)) & 255u;
            hash *= 1099511628211u;
        }
    }
    qsort(words, WORDS / 8, sizeof words[0], in_order);
    return (double)(hash >> 40) + words[7];
}

int main(int argc, char **argv)
{
    uint32_t state = 2463534242u;
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < GRID; i++)
        for (int j = 0; j < GRID; j++)
            grid[0][i][j] = grid[1][i][j] = part(&state);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            a[i][j] = part(&state);
            b[i][j] = part(&state);
        }
    for (int i = 0; i < BODIES; i++) {
        x[i] = part(&state);
        y[i] = part(&state);
        z[i] = part(&state);
    }
    double sum = 0.0;
    for (int round = 0; round < rounds; round++) {
        sum += diffusion() + 4 * product() + gravity() + hashing(&state);
        x[round % BODIES] += 0.001f;
        a[round % SIDE][0] += 0.001;
    }
    printf("%.9g\n", sum);
    return 0;
}
