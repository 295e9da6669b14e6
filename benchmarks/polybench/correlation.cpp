// The correlation matrix of 240 columns of 260 observations.
#include <math.h>
void kernel_correlation(float data[260][240], float corr[240][240]) {
  float mean[240];
  float stddev[240];
  for (int j = 0; j < 240; j++) {
    mean[j] = 0.0f;
    for (int i = 0; i < 260; i++) mean[j] += data[i][j];
    mean[j] /= 260.0f;
  }
  for (int j = 0; j < 240; j++) {
    stddev[j] = 0.0f;
    for (int i = 0; i < 260; i++) stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
    stddev[j] = sqrtf(stddev[j] / 260.0f);
    stddev[j] = stddev[j] <= 0.1f ? 1.0f : stddev[j];
  }
  for (int i = 0; i < 260; i++)
    for (int j = 0; j < 240; j++) data[i][j] = (data[i][j] - mean[j]) / (sqrtf(260.0f) * stddev[j]);
  for (int i = 0; i < 240; i++)
    for (int j = 0; j < 240; j++) {
      corr[i][j] = 0.0f;
      for (int k = 0; k < 260; k++) corr[i][j] += data[k][i] * data[k][j];
    }
  for (int i = 0; i < 240; i++) corr[i][i] = 1.0f;
}
